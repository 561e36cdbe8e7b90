#include "cli/output_format.h"

#include "cli/listing.h"
#include "cli/terminal.h"

namespace membill::cli {
namespace {

std::vector<std::string_view> format_names() {
  std::vector<std::string_view> names;
  for (const report::Format& format : report::formats()) names.push_back(format.name);
  return names;
}

std::string format_help() {
  std::string text;
  for (const std::string_view name : format_names()) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

}  // namespace

std::vector<OptionSpec> report_options() {
  const std::vector<std::string_view> names = format_names();
  return {{"--format", Takes::value, "FORMAT", format_help(), "Output", {names.begin(), names.end()}},
          {"--brief", Takes::nothing, "", "the verdict on one line: --format brief", "Output", {}},
          {"--strict", Takes::nothing, "", "exit with 1 for tight and unknown too", "Output", {}},
          {"--exit-zero", Takes::nothing, "", "exit with 0 whenever the bill was computed", "Output", {}}};
}

const report::Format* chosen_format(const Arguments& arguments, std::string_view fallback, Problems& problems) {
  const std::string* typed = arguments.value("--format");
  if (typed != nullptr && arguments.is_on("--brief") && *typed != "brief") {
    problems.add({kCommandLine, "--brief", "contradicts --format " + *typed, ""});
    return nullptr;
  }
  if (typed == nullptr) return report::find_format(arguments.is_on("--brief") ? "brief" : fallback);
  const report::Format* format = report::find_format(*typed);
  if (format == nullptr) {
    Problem problem = unknown_name("format", *typed, format_names());
    problem.key = "--format";
    problems.add(std::move(problem));
  }
  return format;
}

ExitCode print_report(const Report& report, const report::Format& format, const Arguments& arguments, Output& output) {
  output.out += format.render(report, {terminal_width(), wants_color()});
  const bool shown = format.name == "table" && both_are_terminals();
  if (!shown) {
    for (const std::string& warning : report.warnings) {
      output.notes.push_back(to_text({report.model.name, "", "warning: " + warning, ""}));
    }
  }
  return arguments.is_on("--exit-zero") ? ExitCode::computed
                                        : exit_code(report.verdict.answer, arguments.is_on("--strict"));
}

}  // namespace membill::cli
