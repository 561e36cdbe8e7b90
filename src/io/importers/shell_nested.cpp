// Shells that a script starts: srun bash -c "torchrun train.py ...".
#include <utility>

#include "io/importers/shell_text.h"
#include "io/importers/shell_words.h"
#include "io/importers/slurm.h"

namespace membill::io {
namespace {

constexpr int kDeepestShell = 3;
constexpr std::size_t kMostNested = 100;  // commands that a script hands to another shell

// The text that a command hands to another shell: srun bash -c "...", docker run image sh -lc '...'. Empty: none.
std::string nested_script(const std::vector<std::string>& words) {
  if (words.empty()) return {};
  if (words.front() == "eval") return joined(words, 1);
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    const std::string name = words[i].substr(words[i].rfind('/') + 1);
    const std::string& option = words[i + 1];
    if ((name == "bash" || name == "sh" || name == "zsh") && option.starts_with('-') && option.ends_with('c'))
      return words[i + 2];
  }
  return {};
}

std::vector<ShellCommand> split_nested(std::string_view script, Variables variables, int depth) {
  std::vector<ShellCommand> commands = split_one(script, std::move(variables));
  if (depth == kDeepestShell) return commands;
  std::vector<ShellCommand> all;
  std::size_t nested = 0;
  for (ShellCommand& command : commands) {
    const std::string inner = nested < kMostNested ? nested_script(command.words) : std::string();
    if (inner.empty()) {
      all.push_back(std::move(command));
      continue;
    }
    ++nested;
    for (ShellCommand& each : split_nested(inner, command.variables, depth + 1)) {
      if (each.files == nullptr || each.files->empty()) each.files = command.files;
      if (all.size() < kMostCommands) all.push_back(std::move(each));
    }
  }
  return all;
}

}  // namespace

std::vector<ShellCommand> split_command(const std::vector<std::string>& words) {
  const std::string inner = nested_script(words);
  if (inner.empty()) return {ShellCommand{words, {}, nullptr}};
  return split_script(inner);
}

std::vector<ShellCommand> split_script(std::string_view script, Variables variables) {
  return split_nested(script, slurm_variables(script, std::move(variables)), 0);
}

}  // namespace membill::io
