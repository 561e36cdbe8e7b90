// From the arguments of a command to a printed bill: shared by estimate and check.
#ifndef MEMBILL_CLI_ESTIMATE_JOB_H_
#define MEMBILL_CLI_ESTIMATE_JOB_H_

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace membill::cli {

// Where a command finds its inputs, and how it prints by default.
struct JobRequest {
  const std::string* model;         // MODEL as typed; null: none
  const std::string* job;           // the job file's path; null: none
  std::string_view default_format;  // "table"
};

// --data, --show-inputs and --smallest-card.
[[nodiscard]] std::vector<OptionSpec> bill_options();

// Reads the inputs, estimates, prints. Throws InputError.
[[nodiscard]] ExitCode estimate_job(const Arguments& arguments, const JobRequest& request, Output& output);

}  // namespace membill::cli

#endif  // MEMBILL_CLI_ESTIMATE_JOB_H_
