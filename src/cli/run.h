// The whole program but for main(): from the words of a command line to an exit status.
#ifndef MEMBILL_CLI_RUN_H_
#define MEMBILL_CLI_RUN_H_

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/exit_code.h"

namespace membill::cli {

// What one run wrote and how it ended.
struct Outcome {
  ExitCode code = ExitCode::computed;
  std::string out;                    // for stdout; empty unless the input was good
  std::vector<std::string> messages;  // for stderr, one line each, without the program's name; no line twice
};

// Runs the command line `words` (the program's name left out). `stream` writes to stdout what a long command has so far (Output::stream);
// without it, that is part of Outcome::out.
// Never throws for bad input; whatever else goes wrong inside becomes ExitCode::internal with a message that asks for a report.
[[nodiscard]] Outcome run(std::span<const std::string> words, std::function<bool(std::string_view)> stream = {});

}  // namespace membill::cli

#endif  // MEMBILL_CLI_RUN_H_
