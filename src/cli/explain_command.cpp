// membill explain: the bill as a walk-through.
#include "cli/any_report.h"
#include "cli/command_list.h"
#include "cli/data_option.h"
#include "cli/inputs.h"
#include "cli/language.h"
#include "cli/listing.h"
#include "membill/estimate.h"
#include "report/explain.h"

namespace membill::cli {
namespace {

std::vector<ArgumentSpec> arguments() {
  return {{"MODEL",
           "a preset, a config.json, a model folder, a job file, a saved report, or - for a config on standard input",
           false,
           {}}};
}

std::vector<OptionSpec> options() {
  std::vector<OptionSpec> all = input_options();
  all.push_back({"--depth", Takes::value, "WORD", "brief, normal or full", "Output", {"brief", "normal", "full"}});
  all.push_back({"--quiz", Takes::nothing, "", "ten questions on the job, with their answers", "Output", {}});
  all.push_back(language_option());
  all.push_back(data_option());
  return all;
}

report::Depth read_depth(const Arguments& arguments, Problems& problems) {
  const std::string* typed = arguments.value("--depth");
  if (typed == nullptr || *typed == "normal") return report::Depth::normal;
  if (*typed == "brief") return report::Depth::brief;
  if (*typed == "full") return report::Depth::full;
  Problem problem = unknown_name("depth", *typed, {"brief", "normal", "full"});
  problem.key = "--depth";
  problems.add(std::move(problem));
  return report::Depth::normal;
}

ExitCode run_explain(const Arguments& arguments, Output& output) {
  Problems problems;
  const report::Depth depth = read_depth(arguments, problems);
  const report::Language language = chosen_language(arguments, problems);
  Report found;
  try {
    const std::string* name = arguments.positional(0);
    std::optional<Report> saved = name == nullptr ? std::nullopt : saved_report(*name);
    if (saved) {
      found = *std::move(saved);
    } else {
      const Inputs inputs = read_inputs(arguments, name, arguments.value("--job"));
      found = estimate(inputs.model, inputs.plan, inputs.hardware);
    }
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) problems.add(problem);
  }
  problems.throw_if_any();
  output.out = arguments.is_on("--quiz") ? report::quiz(found, language) : report::explain(found, depth, language);
  return ExitCode::computed;
}

}  // namespace

Command explain_command() {
  return {"explain",
          "The bill as a walk-through: formulas, numbers, sources",
          arguments,
          options,
          {"explain llama-2-7b --method lora --checkpointing full", "explain saved.json --lang zh",
           "explain --job job.yaml --depth full", "explain llama-2-7b --quiz"},
          run_explain};
}

}  // namespace membill::cli
