// Completion scripts, written from the tables of commands.
#ifndef MEMBILL_CLI_COMPLETION_H_
#define MEMBILL_CLI_COMPLETION_H_

#include <string>

namespace membill::cli {

[[nodiscard]] std::string bash_completion();
[[nodiscard]] std::string zsh_completion();
[[nodiscard]] std::string fish_completion();

}  // namespace membill::cli

#endif  // MEMBILL_CLI_COMPLETION_H_
