// membill render: any format from a saved report.
#include "cli/command_list.h"
#include "cli/output_format.h"
#include "io/json_reader.h"
#include "io/text_file.h"
#include "report/read_report.h"

namespace membill::cli {
namespace {

std::vector<ArgumentSpec> arguments() {
  return {{"FILE", "a report saved with --format json or jsonl; - reads standard input", true, {}}};
}

ExitCode run_render(const Arguments& arguments, Output& output) {
  Problems problems;
  const report::Format* format = chosen_format(arguments, "table", problems);
  Report saved;
  try {
    const io::TextFile file = io::read_file(*arguments.positional(0));
    saved = report::read_report(io::parse_json(file.text, file.name), file.name, problems);
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) problems.add(problem);
  }
  problems.throw_if_any();
  return print_report(saved, *format, arguments, output);
}

}  // namespace

Command render_command() {
  return {"render",
          "Any format from a saved report, byte for byte as the original run would print it",
          arguments,
          report_options,
          {"render saved.json", "render saved.json --format markdown"},
          run_render};
}

}  // namespace membill::cli
