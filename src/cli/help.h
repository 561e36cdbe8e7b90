// Help, the man page and shell completions, all written from the tables of commands.
#ifndef MEMBILL_CLI_HELP_H_
#define MEMBILL_CLI_HELP_H_

#include <string>

#include "cli/command.h"

namespace membill::cli {

// What `membill --help` prints.
[[nodiscard]] std::string program_help();
// What `membill COMMAND --help` prints.
[[nodiscard]] std::string command_help(const Command& command);

// The synopsis of a command: "membill estimate [MODEL] [options]".
[[nodiscard]] std::string synopsis(const Command& command);
// An option as help lists it: "--gpu NAME|SIZE|auto".
[[nodiscard]] std::string option_title(const OptionSpec& option);

// The exit statuses, one line each, for help and the man page.
[[nodiscard]] const std::vector<std::pair<std::string, std::string>>& exit_status_lines();

}  // namespace membill::cli

#endif  // MEMBILL_CLI_HELP_H_
