// One function for each command's file.
#ifndef MEMBILL_CLI_COMMAND_LIST_H_
#define MEMBILL_CLI_COMMAND_LIST_H_

#include "cli/command.h"

namespace membill::cli {

[[nodiscard]] Command estimate_command();
[[nodiscard]] Command check_command();
[[nodiscard]] Command export_command();
[[nodiscard]] Command sweep_command();
[[nodiscard]] Command render_command();
[[nodiscard]] Command models_command();
[[nodiscard]] Command gpus_command();
[[nodiscard]] Command optimizers_command();
[[nodiscard]] Command formats_command();
[[nodiscard]] Command completion_command();
[[nodiscard]] Command man_command();

}  // namespace membill::cli

#endif  // MEMBILL_CLI_COMMAND_LIST_H_
