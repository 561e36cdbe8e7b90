// membill plan: what to change so that a job fits.
#include "cli/command_list.h"
#include "cli/data_option.h"
#include "cli/inputs.h"
#include "cli/language.h"
#include "cli/listing.h"
#include "io/hardware_source.h"
#include "membill/remedies.h"
#include "report/remedies_text.h"
#include "report/text.h"

namespace membill::cli {
namespace {

std::vector<ArgumentSpec> arguments() {
  return {{"MODEL", "a preset, a config.json, a model folder, or - for a config on standard input", false, {}}};
}

std::vector<OptionSpec> options() {
  std::vector<OptionSpec> all = input_options();
  for (OptionSpec& option : listing_options()) all.push_back(std::move(option));
  all.push_back(language_option());
  all.push_back(data_option());
  return all;
}

// Cards of the same vendor: another one would need other software.
std::vector<GpuSpec> cards_like(const GpuSpec& card, const io::DataDirs& dirs) {
  std::vector<GpuSpec> cards;
  for (io::FoundGpu& found : io::all_gpus(dirs))
    if (card.vendor.empty() || found.gpu.vendor == card.vendor) cards.push_back(std::move(found.gpu));
  return cards;
}

ListingRow row_of(const char* kind, const RemedyTrial& trial) {
  std::vector<std::string> ids, settings;
  for (const Remedy& remedy : trial.remedies) {
    ids.push_back(remedy.id);
    for (const PlanSetting& setting : remedy.settings) settings.push_back(setting.key + "=" + setting.text);
  }
  return {kind,
          {{"kind", kind},
           {"changes", ids},
           {"verdict", std::string(report::answer_word(trial.answer))},
           {"saved", trial.saved},
           {"device", trial.device},
           {"headroom", trial.headroom ? Cell(*trial.headroom) : Cell()},
           {"extra_compute_permille", trial.extra_compute},
           {"communication", trial.communication},
           {"host_transfer", trial.host_transfer},
           {"price", report::price_text(trial, report::Language::en)},
           {"settings", settings},
           {"options", report::settings_text(trial)}}};
}

Listing listing_of(const RemedyPlan& plan) {
  Listing listing;
  for (const RemedyTrial& trial : plan.single) listing.rows.push_back(row_of("single", trial));
  for (const RemedyTrial& trial : plan.together) listing.rows.push_back(row_of("together", trial));
  if (plan.smallest) listing.rows.push_back(row_of("smallest", *plan.smallest));
  return listing;
}

bool is_solved(const RemedyPlan& plan) {
  const auto suffices = [](const RemedyTrial& trial) {
    return trial.answer == Answer::fits || trial.answer == Answer::tight;
  };
  return plan.fits_now() || !plan.together.empty() || (!plan.single.empty() && suffices(plan.single.front()));
}

ExitCode run_plan(const Arguments& arguments, Output& output) {
  Problems problems;
  const report::Language language = chosen_language(arguments, problems);
  std::string format;
  Inputs inputs;
  try {
    format = listing_format(arguments);
    inputs = read_inputs(arguments, arguments.positional(0), arguments.value("--job"));
    if (!inputs.hardware.usable())
      problems.add({kCommandLine, "--gpu", "is missing: nothing needs to change on no card", "--gpu NAME|SIZE"});
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) problems.add(problem);
  }
  problems.throw_if_any();
  if (output.only_problems) return ExitCode::computed;
  const RemedyPlan plan =
      find_remedies(inputs.model, inputs.plan, inputs.hardware, cards_like(*inputs.hardware.gpu, inputs.dirs));
  output.out = format == "table" ? report::render_remedies(plan, language) : render_listing(listing_of(plan), format);
  return is_solved(plan) ? ExitCode::computed : ExitCode::does_not_fit;
}

}  // namespace

Command plan_command() {
  return {"plan",
          "What to change so that a job fits, and what each change costs",
          arguments,
          options,
          {"plan llama-3.1-8b --gpu rtx-4090", "plan --job job.yaml --gpu a100-40gb --lang zh"},
          run_plan};
}

}  // namespace membill::cli
