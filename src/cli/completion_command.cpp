// membill completion: scripts that complete commands, options and their values in a shell.
#include <string>

#include "cli/command_list.h"
#include "cli/completion.h"
#include "cli/listing.h"

namespace membill::cli {
namespace {

struct Shell {
  std::string_view name;
  std::string (*script)();
};
constexpr Shell kShells[] = {{"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};

std::vector<std::string_view> shell_names() {
  std::vector<std::string_view> names;
  for (const Shell& shell : kShells) names.push_back(shell.name);
  return names;
}

std::vector<ArgumentSpec> arguments() {
  const std::vector<std::string_view> names = shell_names();
  return {{"SHELL", "bash, zsh or fish", true, {names.begin(), names.end()}}};
}

std::vector<OptionSpec> options() { return {}; }

ExitCode run_completion(const Arguments& arguments, Output& output) {
  const std::string& name = *arguments.positional(0);
  for (const Shell& shell : kShells) {
    if (shell.name != name) continue;
    output.out = shell.script();
    return ExitCode::computed;
  }
  throw InputError(unknown_name("shell", name, shell_names()));
}

}  // namespace

Command completion_command() {
  return {"completion", "A script that completes membill's commands and options in a shell",      arguments,
          options,      {"completion bash > ~/.local/share/bash-completion/completions/membill"}, run_completion};
}

}  // namespace membill::cli
