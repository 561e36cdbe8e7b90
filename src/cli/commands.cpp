#include <vector>

#include "cli/command_list.h"

namespace membill::cli {

std::span<const Command> commands() {
  static const std::vector<Command> kCommands{estimate_command(),   check_command(),      export_command(),
                                              sweep_command(),      render_command(),     models_command(),
                                              gpus_command(),       optimizers_command(), formats_command(),
                                              completion_command(), man_command()};
  return kCommands;
}

const Command* find_command(std::string_view name) {
  for (const Command& command : commands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

}  // namespace membill::cli
