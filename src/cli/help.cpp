#include "cli/help.h"

#include "report/text.h"

namespace membill::cli {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kTitle = 26;

// "  title   text", the text wrapped beside the title, or below one that is too long.
void entry(std::string& out, const std::string& title, const std::string& text) {
  std::string lead = "  " + title;
  for (const std::string& line : report::wrapped(text, kWidth - kTitle)) {
    if (lead.size() + 2 > kTitle) {
      out += lead + "\n";
      lead.clear();
    }
    out += report::left_aligned(lead, kTitle) + line + "\n";
    lead.clear();
  }
  if (!lead.empty()) out += lead + "\n";
}

void options(std::string& out, const std::vector<OptionSpec>& all) {
  std::string group;
  for (const OptionSpec& option : all) {
    if (option.group != group) {
      group = option.group;
      out += "\n" + group + ":\n";
    }
    entry(out, option_title(option), option.help);
  }
}

}  // namespace

std::string option_title(const OptionSpec& option) {
  return option.value_name.empty() ? option.name : option.name + " " + option.value_name;
}

std::string synopsis(const Command& command) {
  std::string text = "membill " + std::string(command.name);
  for (const ArgumentSpec& argument : command.arguments()) {
    text += argument.required ? " " + argument.name : " [" + argument.name + "]";
  }
  if (!command.options().empty()) text += " [options]";
  return text;
}

const std::vector<std::pair<std::string, std::string>>& exit_status_lines() {
  static const std::vector<std::pair<std::string, std::string>> kLines{
      {"0", "computed, and it fits or no card was named (tight and unknown too, unless --strict)"},
      {"1", "does not fit"},
      {"2", "bad usage or bad input; nothing is printed on standard output"},
      {"3", "a defect of membill, or its output could not be written"}};
  return kLines;
}

std::string program_help() {
  std::string out =
      "membill computes what a training job costs in memory, item by item, and whether\n"
      "it fits, before it is launched.\n\nUsage: membill COMMAND [arguments] [options]\n\nCommands:\n";
  for (const Command& command : commands()) entry(out, std::string(command.name), std::string(command.summary));
  out += "\nOptions:\n";
  entry(out, "--help, -h", "this text; after a command, that command's");
  entry(out, "--version, -V", "the version");
  out += "\nExit status:\n";
  for (const auto& [status, meaning] : exit_status_lines()) entry(out, status, meaning);
  out += "\nExample:\n  membill estimate llama-2-7b --method lora --gpu rtx-4090\n";
  return out;
}

std::string command_help(const Command& command) {
  std::string out = std::string(command.summary) + "\n\nUsage: " + synopsis(command) + "\n";
  const std::vector<ArgumentSpec> arguments = command.arguments();
  if (!arguments.empty()) out += "\nArguments:\n";
  for (const ArgumentSpec& argument : arguments) entry(out, argument.name, argument.help);
  options(out, command.options());
  if (!command.examples.empty()) out += "\nExamples:\n";
  for (const std::string_view example : command.examples) out += "  membill " + std::string(example) + "\n";
  return out;
}

}  // namespace membill::cli
