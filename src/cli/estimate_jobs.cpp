#include "cli/estimate_jobs.h"

#include <algorithm>

#include "base/text.h"
#include "cli/inputs.h"
#include "io/job_file.h"
#include "io/json_reader.h"
#include "io/text_file.h"
#include "membill/estimate.h"
#include "report/formats.h"
#include "report/json_writer.h"

namespace membill::cli {
namespace {

std::string errors_line(std::int64_t line, const std::vector<Problem>& problems) {
  report::JsonWriter out(report::JsonLayout::compact);
  out.begin_object();
  out.key("line");
  out.integer(line);
  out.key("errors");
  out.begin_array();
  for (const Problem& problem : problems) out.text(to_text(problem));
  out.end_array();
  out.end_object();
  return out.take() + "\n";
}

std::string answer(const Arguments& arguments, std::string_view text, const std::string& file, std::int64_t line) {
  try {
    Problems problems;
    io::JobFile job = io::split_job(io::parse_json(text, file), file, "", problems);
    problems.throw_if_any();
    const Inputs inputs = inputs_of(arguments, arguments.positional(0), std::move(job));
    return report::render_jsonl(estimate(inputs.model, inputs.plan, inputs.hardware), {});
  } catch (const InputError& error) {
    return errors_line(line, error.problems());
  } catch (const OverflowError& error) {
    return errors_line(line, {{file, "", "the sizes are too large: " + std::string(error.what()) + " bytes", ""}});
  }
}

}  // namespace

ExitCode estimate_jobs(const Arguments& arguments, Output& output) {
  Problems problems;
  for (const char* option : {"--job", "--as", "--brief", "--smallest-card", "--show-inputs"})
    if (arguments.has(option)) problems.add({kCommandLine, option, "is for one job, not for --jobs", ""});
  const std::string* format = arguments.value("--format");
  if (format != nullptr && *format != "jsonl") problems.add({kCommandLine, "--format", "of --jobs is jsonl", "jsonl"});
  problems.throw_if_any();
  const io::TextFile file = io::read_file(*arguments.value("--jobs"));
  if (output.only_problems) return ExitCode::computed;
  std::int64_t line = 0;
  for (std::size_t at = 0; at < file.text.size();) {
    const std::size_t end = std::min(file.text.find('\n', at), file.text.size());
    const std::string_view text = trim(std::string_view(file.text).substr(at, end - at));
    ++line;
    at = end + 1;
    if (text.empty() || text == "\r") continue;
    if (!output.stream(answer(arguments, text, file.name + " line " + std::to_string(line), line))) break;
  }
  return ExitCode::computed;
}

}  // namespace membill::cli
