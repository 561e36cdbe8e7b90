#include "cli/completion.h"

#include "cli/command.h"

namespace membill::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

std::string command_names() {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  return joined(names);
}

std::string option_names(const Command& command) {
  std::vector<std::string> names{"--help"};
  for (const OptionSpec& option : command.options()) {
    names.push_back(option.name);
    if (option.takes == Takes::boolean) names.push_back("--no-" + option.name.substr(2));
  }
  return joined(names);
}

bool takes_value(const OptionSpec& option) { return option.takes == Takes::value || option.takes == Takes::values; }

// Single quotes for a shell; `text` holds no single quote but fish and zsh descriptions may.
std::string quoted_for_shell(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += c;
    }
  }
  return result + "'";
}

void bash_command(std::string& out, const Command& command) {
  out += "    " + std::string(command.name) + ")\n      case \"$previous\" in\n";
  for (const OptionSpec& option : command.options()) {
    if (!takes_value(option)) continue;
    const std::string action =
        option.words.empty() ? "COMPREPLY=($(compgen -f -- \"$word\"))"
                             : "COMPREPLY=($(compgen -W " + quoted_for_shell(joined(option.words)) + " -- \"$word\"))";
    out += "        " + option.name + ") " + action + "; return ;;\n";
  }
  out += "      esac\n      if [[ $word == -* ]]; then\n        COMPREPLY=($(compgen -W " +
         quoted_for_shell(option_names(command)) +
         " -- \"$word\"))\n      else\n        COMPREPLY=($(compgen -f -- \"$word\")";
  for (const ArgumentSpec& argument : command.arguments()) {
    if (!argument.words.empty()) out += " $(compgen -W " + quoted_for_shell(joined(argument.words)) + " -- \"$word\")";
  }
  out += ")\n      fi ;;\n";
}

// zsh ends a description at ']' and splits at ':'.
std::string zsh_escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

void zsh_command(std::string& out, const Command& command) {
  out += "    " + std::string(command.name) + ")\n      _arguments \\\n";
  for (const OptionSpec& option : command.options()) {
    std::string spec = (option.takes == Takes::values ? "*" : "") + option.name + "[" + zsh_escaped(option.help) + "]";
    if (takes_value(option)) {
      spec += ":" + zsh_escaped(option.value_name) + ":" +
              (option.words.empty() ? "_files" : "(" + joined(option.words) + ")");
    }
    out += "        " + quoted_for_shell(spec) + " \\\n";
    if (option.takes == Takes::boolean)
      out += "        " + quoted_for_shell("--no-" + option.name.substr(2) + "[turns it off]") + " \\\n";
  }
  for (const ArgumentSpec& argument : command.arguments()) {
    const std::string action = argument.words.empty() ? "_files" : "(" + joined(argument.words) + ")";
    out += "        " + quoted_for_shell(":" + zsh_escaped(argument.name) + ":" + action) + " \\\n";
  }
  out += "        '--help[help on the command]' ;;\n";
}

void fish_command(std::string& out, const Command& command) {
  const std::string lead = "complete -c membill -n '__fish_seen_subcommand_from " + std::string(command.name) + "'";
  for (const OptionSpec& option : command.options()) {
    out += lead + " -l " + option.name.substr(2) + " -d " + quoted_for_shell(option.help);
    if (takes_value(option)) out += option.words.empty() ? " -r" : " -x -a " + quoted_for_shell(joined(option.words));
    out += "\n";
    if (option.takes == Takes::boolean) out += lead + " -l no-" + option.name.substr(2) + " -d 'turns it off'\n";
  }
  for (const ArgumentSpec& argument : command.arguments()) {
    if (!argument.words.empty()) out += lead + " -a " + quoted_for_shell(joined(argument.words)) + "\n";
  }
}

}  // namespace

std::string bash_completion() {
  std::string out =
      "# bash completion of membill\n_membill() {\n  local word=${COMP_WORDS[COMP_CWORD]} "
      "previous=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  if ((COMP_CWORD == 1)); then\n    COMPREPLY=($(compgen -W " +
      quoted_for_shell(command_names() + " help --help --version") +
      " -- \"$word\"))\n    return\n  fi\n  case \"${COMP_WORDS[1]}\" in\n";
  for (const Command& command : commands()) bash_command(out, command);
  out += "    help) COMPREPLY=($(compgen -W " + quoted_for_shell(command_names()) +
         " -- \"$word\")) ;;\n  esac\n}\ncomplete -F _membill membill\n";
  return out;
}

std::string zsh_completion() {
  std::string out = "#compdef membill\n_membill() {\n  local -a commands=(\n";
  for (const Command& command : commands()) {
    out +=
        "    " + quoted_for_shell(std::string(command.name) + ":" + zsh_escaped(std::string(command.summary))) + "\n";
  }
  out +=
      "  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n"
      "  local command=$words[2]\n  shift words\n  ((CURRENT--))\n  case $command in\n";
  for (const Command& command : commands()) zsh_command(out, command);
  out += "  esac\n}\n_membill \"$@\"\n";
  return out;
}

std::string fish_completion() {
  std::string out = "# fish completion of membill\n";
  for (const Command& command : commands()) {
    out += "complete -c membill -n __fish_use_subcommand -f -a " + std::string(command.name) + " -d " +
           quoted_for_shell(std::string(command.summary)) + "\n";
  }
  for (const Command& command : commands()) fish_command(out, command);
  return out;
}

}  // namespace membill::cli
