// membill compare: a measured run against the bill.
#include <fmt/format.h>

#include <filesystem>
#include <iterator>

#include "cli/any_report.h"
#include "cli/command_list.h"
#include "cli/data_option.h"
#include "cli/inputs.h"
#include "cli/listing.h"
#include "io/json_reader.h"
#include "io/runtime_file.h"
#include "io/text_file.h"
#include "membill/compare.h"
#include "report/text.h"

namespace membill::cli {
namespace {

constexpr const char* kDevice = "--device";
constexpr const char* kCalibrate = "--calibrate";

std::vector<ArgumentSpec> arguments() {
  return {{"MEASURED",
           "a file with memory_stats() as JSON or with memory_summary(), - for standard input, or \"allocated=14.2GiB "
           "reserved=15GiB\"",
           true,
           {}},
          {"JOB", "a saved report, a job file, a config.json, a model folder or a preset", false, {}}};
}

std::vector<OptionSpec> options() {
  std::vector<OptionSpec> all{
      {kDevice, Takes::value, "SIZE", "what nvidia-smi showed of the process at its highest", "Measured", {}},
      {kCalibrate,
       Takes::nothing,
       "",
       "keep what lies beside the allocator in the card's file under --data",
       "Measured",
       {}}};
  for (std::vector<OptionSpec> more : {input_options(), listing_options()})
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  all.push_back(data_option());
  return all;
}

// memory_stats() has "allocated_bytes.all.peak"; torch._C's own form is nested.
std::optional<std::int64_t> stat_of(const Value& tree, const std::string& kind) {
  const Value* value = tree.find(kind + "_bytes.all.peak");
  if (value == nullptr) {
    value = tree.find(kind + "_bytes");
    for (const char* part : {"all", "peak"}) value = value == nullptr ? nullptr : value->find(part);
  }
  if (value == nullptr) value = tree.find("max_memory_" + kind);
  return value != nullptr && value->is_int() ? std::optional(value->as_int()) : std::nullopt;
}

Measured read_measured(const std::string& argument) {
  std::error_code error;
  const bool is_file = argument == "-" || std::filesystem::exists(argument, error);
  const io::TextFile file = is_file ? io::read_file(argument) : io::TextFile{kCommandLine, argument};
  const std::size_t first = file.text.find_first_not_of(" \t\r\n");
  Measured measured;
  if (first != std::string::npos && file.text[first] == '{') {
    const Value tree = io::parse_json(file.text, file.name);
    measured.requested = stat_of(tree, "requested");
    measured.allocated = stat_of(tree, "allocated");
    measured.reserved = stat_of(tree, "reserved");
  } else {
    measured = read_measured_text(file.text);
  }
  if (measured.empty())
    throw InputError(Problem{
        is_file ? file.name : kCommandLine, is_file ? "" : "MEASURED",
        is_file ? "has no peak that membill knows" : membill::quoted(argument) + " is no file and names no peak",
        "memory_stats() as JSON, memory_summary(), or allocated=14.2GiB"});
  return measured;
}

std::string percent(std::int64_t part, std::int64_t whole) {
  if (whole <= 0) return {};
  const double share = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return fmt::format("{:+.2f}%", share);
}

Listing listing_of(const Comparison& comparison) {
  Listing listing{{"figure", "measured by the run", "membill says", "difference", "off_by"}, {}};
  for (const ComparedFigure& figure : comparison.figures) {
    const std::string sign = figure.difference > 0 ? "+" : "";
    listing.rows.push_back({figure.name,
                            {{"figure", figure.name},
                             {"measured", figure.measured},
                             {"predicted", figure.predicted},
                             {"less", figure.difference},
                             {"off_by", percent(figure.difference, figure.predicted)},
                             {"measured by the run", report::size_text(figure.measured)},
                             {"membill says", report::size_text(figure.predicted)},
                             {"difference", sign + report::size_text(figure.difference)}}});
  }
  return listing;
}

void add_device(const Arguments& arguments, Measured& measured, Problems& problems) {
  const std::string* text = arguments.value(kDevice);
  if (text == nullptr) return;
  Bytes size;
  std::string why;
  if (parse_bytes(*text, size, why))
    measured.device = size.count();
  else
    problems.add({kCommandLine, kDevice, why, ""});
}

// The line of the bill that the measured bytes beside the allocator are: on one card the context, on several what is left beside it.
struct RuntimeLine {
  std::string_view key;
  std::int64_t bytes = 0;
};

RuntimeLine runtime_line(const Measured& measured, const Report& report) {
  if (!measured.device || !measured.reserved)
    throw InputError(Problem{kCommandLine, kCalibrate, "needs what the process and the allocator held",
                             "device=15.7GiB reserved=15.2GiB, or --device SIZE beside memory_stats()"});
  if (!report.hardware.name)
    throw InputError(Problem{kCommandLine, "--gpu", "is missing: the card of the run", "--gpu NAME"});
  const std::int64_t beside = checked_sub(*measured.device, *measured.reserved);
  std::int64_t context = 0;
  for (const LineItem& item : report.items)
    if (item.id == "runtime.context" && report.hardware.count > 1) context = item.bytes.value_or(0);
  if (beside < context)
    throw InputError(Problem{kCommandLine, kCalibrate,
                             "the process held " + report::size_text(beside) + " beside the allocator" +
                                 (context > 0 ? ", the context alone is " + report::size_text(context) : ""),
                             "device and reserved of the same moment; first calibrate on one card"});
  return {report.hardware.count > 1 ? io::kCommunicatorKey : io::kContextKey, beside - context};
}

void calibrate(const Arguments& arguments, const Measured& measured, const Report& report, Output& output) {
  const RuntimeLine line = runtime_line(measured, report);
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  const std::int64_t mib = (line.bytes + kMiB / 2) / kMiB;
  const std::string run = report.model.name + " on " + std::to_string(report.hardware.count) + " x " +
                          *report.hardware.name + ": device " + report::size_text(*measured.device) + ", reserved " +
                          report::size_text(*measured.reserved);
  const std::string path = io::keep_runtime_line(data_dirs(arguments), *report.hardware.name, line.key, mib, run);
  output.notes.push_back(path + ": " + std::string(line.key) + ": " + std::to_string(mib) +
                         " is kept from now on: what the run held beside the allocator");
}

ExitCode run_compare(const Arguments& arguments, Output& output) {
  const std::string format = listing_format(arguments);
  Problems problems;
  Measured measured;
  Report report;
  try {
    measured = read_measured(*arguments.positional(0));
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) problems.add(problem);
  }
  try {
    const std::string* job = arguments.positional(1) != nullptr ? arguments.positional(1) : arguments.value("--job");
    if (job == nullptr)
      throw InputError(Problem{kCommandLine, "JOB", "is missing", "a job file, a model, or a saved report"});
    report = any_report(arguments, *job);
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) problems.add(problem);
  }
  add_device(arguments, measured, problems);
  problems.throw_if_any();
  if (arguments.is_on(kCalibrate) && !output.only_problems) calibrate(arguments, measured, report, output);
  const Comparison comparison = compare(measured, report);
  Listing listing = listing_of(comparison);
  if (format != "table")
    for (ListingRow& row : listing.rows) row.cells.resize(5);
  output.out = render_listing(listing, format);
  if (format != "table") return ExitCode::computed;
  for (const Suspect& suspect : comparison.suspects)
    output.out += "as large as the difference: " + suspect.label + " (" + suspect.id + ", " +
                  report::size_text(suspect.bytes) + (suspect.at_peak ? " at the peak)\n" : " at its highest)\n");
  return ExitCode::computed;
}

}  // namespace

Command compare_command() {
  return {"compare",
          "A measured run against the bill: which figure is off",
          arguments,
          options,
          {"compare stats.json job.yaml",
           "compare \"allocated=14.2GiB reserved=15GiB\" llama-2-7b --method lora --checkpointing full",
           "compare stats.json job.yaml --gpu rtx-4090 --device 15.7GiB --calibrate --data ~/membill"},
          run_compare};
}

}  // namespace membill::cli
