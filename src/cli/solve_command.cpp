// membill solve: the largest or smallest number with which a job fits.
#include "cli/command_list.h"
#include "cli/data_option.h"
#include "cli/inputs.h"
#include "cli/listing.h"
#include "membill/solve.h"
#include "report/text.h"

namespace membill::cli {
namespace {

std::vector<ArgumentSpec> arguments() { return {model_argument()}; }

std::vector<std::string_view> target_names(bool maximum) {
  std::vector<std::string_view> names;
  for (const SolveTargetRow& row : solve_targets())
    if (row.maximum == maximum) names.push_back(row.name);
  return names;
}

OptionSpec target_option(bool maximum, const char* help) {
  const std::vector<std::string_view> names = target_names(maximum);
  return {maximum ? "--max" : "--min", Takes::value, "WORD", help, "Solve", {names.begin(), names.end()}};
}

std::vector<OptionSpec> options() {
  std::vector<OptionSpec> all = input_options();
  all.push_back(target_option(true, "the largest that fits: batch, seq, rank, layers, accumulate"));
  all.push_back(target_option(false, "the least that fits: gpus, nodes, zero"));
  all.push_back({"--strict", Takes::nothing, "", "a tight job does not count as fitting", "Solve", {}});
  for (OptionSpec& option : listing_options()) all.push_back(std::move(option));
  all.push_back(data_option());
  return all;
}

const SolveTargetRow* read_target(const Arguments& arguments, Problems& problems) {
  const std::string* most = arguments.value("--max");
  const std::string* least = arguments.value("--min");
  if ((most == nullptr) == (least == nullptr)) {
    problems.add({kCommandLine, "--max", most == nullptr ? "or --min is missing" : "contradicts --min",
                  "one of them: --max batch, --min gpus"});
    return nullptr;
  }
  const std::string& typed = most != nullptr ? *most : *least;
  for (const SolveTargetRow& row : solve_targets())
    if (row.name == typed && row.maximum == (most != nullptr)) return &row;
  Problem problem = unknown_name("target", typed, target_names(most != nullptr));
  problem.key = most != nullptr ? "--max" : "--min";
  problems.add(std::move(problem));
  return nullptr;
}

Cell figure(const std::optional<Report>& report, const Range Totals::*total) {
  if (!report) return {};
  const std::optional<std::int64_t>& value = (report->totals.*total).likely;
  return value ? Cell(*value) : Cell();
}

ListingRow row_of(const char* role, const SolveTargetRow& target, const SolveTrial& trial) {
  const bool refused = !trial.report;
  const Verdict verdict = refused ? Verdict() : trial.report->verdict;
  return {role,
          {{"role", role},
           {"target", std::string(target.name)},
           {"value", trial.value},
           {"verdict", refused ? Cell("refused") : Cell(std::string(report::answer_word(verdict.answer)))},
           {"requested", figure(trial.report, &Totals::requested)},
           {"reserved", figure(trial.report, &Totals::reserved)},
           {"device", figure(trial.report, &Totals::device)},
           {"capacity", verdict.capacity ? Cell(*verdict.capacity) : Cell()},
           {"peak_moment", refused ? Cell() : Cell(trial.report->peak_moment)},
           {"because", refused ? trial.problem : verdict.because}}};
}

std::string sentence(const Solution& solution) {
  const std::string name(solution.target.name);
  if (!solution.answer) return name + ": no value fits\n\n";
  const bool open = solution.target.maximum && !solution.next;
  return name + ": " + report::count_text(solution.answer->value) +
         (solution.target.maximum ? " is the largest that fits" : " is the least that fits") +
         (open ? " of those that were tried\n\n" : "\n\n");
}

ExitCode run_solve(const Arguments& arguments, Output& output) {
  Problems problems;
  const SolveTargetRow* target = read_target(arguments, problems);
  Inputs inputs;
  std::string format;
  try {
    format = listing_format(arguments);
    inputs = read_inputs(arguments, arguments.positional(0), arguments.value("--job"), Check::each_alone);
    if (!inputs.hardware.usable())
      problems.add({kCommandLine, "--gpu", "is missing: what does not fit on no card?", "--gpu NAME|SIZE"});
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) problems.add(problem);
  }
  problems.throw_if_any();
  if (output.only_problems) return ExitCode::computed;
  const Solution solution = solve(inputs.model, inputs.plan, inputs.hardware, *target, {arguments.is_on("--strict")});
  Listing listing{{"role", "value", "verdict", "because"}, {}};
  if (solution.answer) listing.rows.push_back(row_of("answer", *target, *solution.answer));
  if (solution.next) listing.rows.push_back(row_of("next", *target, *solution.next));
  if (format == "table") output.out = sentence(solution);
  output.out += render_listing(listing, format);
  return solution.answer ? ExitCode::computed : ExitCode::does_not_fit;
}

}  // namespace

Command solve_command() {
  return {"solve",
          "The largest batch, the fewest cards: one number of a job, so that it fits",
          arguments,
          options,
          {"solve llama-2-7b --method lora --checkpointing full --gpu rtx-4090 --max batch",
           "solve --job job.yaml --gpu a100-80gb --max seq",
           "solve llama-2-7b --engine deepspeed --gpus 8 --gpu a100-40gb --min zero"},
          run_solve};
}

}  // namespace membill::cli
