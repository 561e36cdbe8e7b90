// membill man: the manual page.
#include "cli/command_list.h"
#include "cli/help.h"
#include "membill/version.h"

namespace membill::cli {
namespace {

// Text that roff prints as it stands.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  const bool is_request = !result.empty() && (result.front() == '.' || result.front() == '\'');
  return is_request ? "\\&" + result : result;
}

void entry(std::string& out, const std::string& title, const std::string& text) {
  out += ".TP\n.B " + escaped(title) + "\n" + escaped(text) + "\n";
}

void command_section(std::string& out, const Command& command) {
  out += ".SS " + escaped(synopsis(command)) + "\n" + escaped(command.summary) + ".\n";
  for (const ArgumentSpec& argument : command.arguments()) entry(out, argument.name, argument.help);
  for (const OptionSpec& option : command.options()) entry(out, option_title(option), option.help);
}

std::vector<ArgumentSpec> arguments() { return {}; }
std::vector<OptionSpec> options() { return {}; }

ExitCode run_man(const Arguments&, Output& output) {
  std::string& out = output.out;
  out = ".TH MEMBILL 1 \"\" \"membill " + std::string(kVersion) + "\" \"User Commands\"\n";
  out += ".SH NAME\nmembill \\- the itemised memory bill of an LLM training job\n";
  out += ".SH SYNOPSIS\n.B membill\n.I COMMAND\n[arguments] [options]\n.SH COMMANDS\n";
  for (const Command& command : commands()) command_section(out, command);
  out += ".SH EXIT STATUS\n";
  for (const auto& [status, meaning] : exit_status_lines()) entry(out, status, meaning);
  out += ".SH ENVIRONMENT\n";
  entry(out, "MEMBILL_DATA", "a folder with the user's own presets, as --data");
  entry(out, "NO_COLOR", "when set and not empty, no colours");
  entry(out, "COLUMNS", "the width of tables, in place of the terminal's");
  out += ".SH EXAMPLES\n.nf\n";
  for (const Command& command : commands()) {
    for (const std::string_view example : command.examples) out += "membill " + escaped(example) + "\n";
  }
  out += ".fi\n";
  return ExitCode::computed;
}

}  // namespace

Command man_command() {
  return {"man", "The manual page, for man -l -", arguments, options, {"man | man -l -"}, run_man};
}

}  // namespace membill::cli
