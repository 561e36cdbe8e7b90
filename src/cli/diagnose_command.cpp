// membill diagnose: the out-of-memory messages of a log.
#include <algorithm>

#include "cli/any_report.h"
#include "cli/command_list.h"
#include "cli/data_option.h"
#include "cli/inputs.h"
#include "cli/listing.h"
#include "cli/terminal.h"
#include "io/text_file.h"
#include "membill/diagnose.h"
#include "report/text.h"

namespace membill::cli {
namespace {

std::vector<ArgumentSpec> arguments() {
  return {{"LOG", "a log file; - reads standard input", true, {}},
          {"MODEL", "the model of the job, to find the tensor; or --job FILE", false, {}}};
}

std::vector<OptionSpec> options() {
  std::vector<OptionSpec> all = input_options();
  for (OptionSpec& option : listing_options()) all.push_back(std::move(option));
  all.push_back(data_option());
  return all;
}

Cell count(std::optional<std::int64_t> value) { return value ? Cell(*value) : Cell(); }

std::string kind_word(OutOfMemoryKind kind) {
  switch (kind) {
    case OutOfMemoryKind::card: return "card";
    case OutOfMemoryKind::ascend: return "ascend";
    case OutOfMemoryKind::bare: return "driver";
    case OutOfMemoryKind::library: return "library";
    case OutOfMemoryKind::host: return "host";
    case OutOfMemoryKind::host_killed: return "killed";
  }
  return {};
}

ListingRow row_of(const Diagnosis& found, const std::vector<SizeMatch>& matches) {
  const OutOfMemoryEvent& event = found.event;
  std::vector<std::string> tensors;
  tensors.reserve(matches.size());
  for (const SizeMatch& match : matches)
    tensors.push_back(match.label + " in " + match.moment + " (" + match.item + ")");
  return {std::to_string(event.line),
          {{"line", static_cast<std::int64_t>(event.line)},
           {"where", kind_word(event.kind)},
           {"cause", std::string(cause_word(found.cause))},
           {"asked", count(event.asked)},
           {"free", count(event.free)},
           {"allocated", count(event.allocated)},
           {"reserved", count(event.reserved)},
           {"total", count(event.total)},
           {"others", count(event.others)},
           {"because", found.because},
           {"tensors", tensors},
           {"remedies", remedies_in_order(found)}}};
}

// Broken where the terminal ends; what follows stands under the text behind `lead`.
void append_lines(const std::string& lead, const std::string& text, std::string& out) {
  std::string start = lead;
  for (const std::string& part : report::wrapped(text, std::max<std::size_t>(terminal_width(), 80) - lead.size())) {
    out += start + part + "\n";
    start.assign(lead.size(), ' ');
  }
}

std::string text_of(const Diagnosis& found, const std::vector<SizeMatch>& matches, bool with_job) {
  std::string out;
  append_lines("line " + std::to_string(found.event.line) + ": ",
               std::string(cause_word(found.cause)) + ": " + found.because, out);
  if (with_job && found.event.asked) {
    for (const SizeMatch& match : matches)
      append_lines("  ",
                   "as large as that: " + match.label + " in " + match.moment + " (" + match.item + ", " +
                       report::size_text(match.bytes) + ")",
                   out);
    if (matches.empty()) out += "  no tensor of the job's step is as large as that\n";
  }
  int number = 1;
  for (const std::string& remedy : remedies_in_order(found))
    append_lines(report::right_aligned(std::to_string(number++), 3) + ". ", remedy, out);
  return out;
}

ExitCode run_diagnose(const Arguments& arguments, Output& output) {
  const std::string format = listing_format(arguments);
  const io::TextFile log = io::read_file(*arguments.positional(0), io::kLargestLog);
  const bool with_job = arguments.positional(1) != nullptr || arguments.has("--job");
  std::optional<Inputs> inputs;
  if (with_job) inputs = read_inputs(arguments, arguments.positional(1), arguments.value("--job"));
  const std::vector<OutOfMemoryEvent> events = find_out_of_memory(log.text);
  if (events.empty())
    throw InputError(Problem{log.name, "", "has no out-of-memory message that membill knows",
                             "PyTorch's, DeepSpeed's and torch_npu's begin with 'CUDA out of memory' and the like"});
  Listing listing;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Diagnosis found = diagnose(events, i);
    std::vector<SizeMatch> matches;
    if (inputs && events[i].asked)
      matches = tensors_of_size(inputs->model, inputs->plan, inputs->hardware, *events[i].asked);
    if (format == "table")
      output.out += (i > 0 ? "\n" : "") + text_of(found, matches, with_job);
    else
      listing.rows.push_back(row_of(found, matches));
  }
  if (format != "table") output.out = render_listing(listing, format);
  return ExitCode::computed;
}

}  // namespace

Command diagnose_command() {
  return {"diagnose",
          "Reads out-of-memory messages: whose fault, and what to do",
          arguments,
          options,
          {"diagnose train.log", "diagnose train.log llama-2-7b --method lora --seq 4096",
           "tail -100 train.log | membill diagnose -"},
          run_diagnose};
}

}  // namespace membill::cli
