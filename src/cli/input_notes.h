// What --show-inputs says.
#ifndef MEMBILL_CLI_INPUT_NOTES_H_
#define MEMBILL_CLI_INPUT_NOTES_H_

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/inputs.h"
#include "io/job_file.h"

namespace membill::cli {

// One line for the model, the machine and each field of the plan: where it was read ("command line", the job file's name, "default"), its
// key or flag, and its value.
[[nodiscard]] std::vector<std::string> input_notes(const Arguments& arguments, const io::JobFile& job,
                                                   const Inputs& inputs);

}  // namespace membill::cli

#endif  // MEMBILL_CLI_INPUT_NOTES_H_
