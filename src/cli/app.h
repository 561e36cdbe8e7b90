// From the words of a command line to Arguments. The only part that knows CLI11.
#ifndef MEMBILL_CLI_APP_H_
#define MEMBILL_CLI_APP_H_

#include <span>
#include <string>
#include <vector>

#include "cli/command.h"
#include "membill/problem.h"

namespace membill::cli {

// Reads the words after the command's name. Unknown options (with the nearest known one), missing and repeated values, and surplus
// or missing arguments are problems, all of them at once; the result counts only when none was added.
[[nodiscard]] Arguments parse_arguments(const Command& command, std::span<const std::string> words, Problems& problems);

}  // namespace membill::cli

#endif  // MEMBILL_CLI_APP_H_
