// membill plan: what to change so that a job fits.
#include "base/text.h"
#include "cli/command_list.h"
#include "cli/data_option.h"
#include "cli/export_job.h"
#include "cli/inputs.h"
#include "cli/language.h"
#include "cli/listing.h"
#include "cli/terminal.h"
#include "io/exporters/changes.h"
#include "io/hardware_source.h"
#include "membill/remedies.h"
#include "report/remedies_text.h"
#include "report/text.h"

namespace membill::cli {
namespace {

std::vector<ArgumentSpec> arguments() { return {model_argument()}; }

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

// The settings of a trial as the job spells them.
class Spelling {
 public:
  Spelling(const Inputs& inputs, const std::string* model, report::Language language)
      : inputs_(inputs),
        language_(language),
        model_(model != nullptr && !names_job(*model) ? *model : inputs.job.model.value_or("")),
        before_(export_job(inputs.plan, inputs.hardware, model_, inputs.dirs)) {}

  // One line each, for people.
  [[nodiscard]] std::vector<std::string> lines(const RemedyTrial& trial) const {
    const io::JobFile& job = inputs_.job;
    if (job.file.empty()) return {report::settings_text(trial)};
    if (job.format.empty()) return {say("plan.own", job.file, join(own_keys(trial), ", "))};
    const io::FormatChanges changes = changes_of(trial);
    std::vector<std::string> lines;
    if (!changes.keys.empty()) lines.push_back(say("plan.file", job.file, job.format, join(changes.keys, ", ")));
    for (const std::string& variable : changes.environment) lines.push_back(say("plan.environment", variable));
    if (!changes.unsaid.empty()) lines.push_back(say("plan.unsaid", job.format, report::settings_text(changes.unsaid)));
    return lines;
  }

  // The keys of the job's format, or membill's own, for scripts.
  [[nodiscard]] std::vector<std::string> keys(const RemedyTrial& trial) const {
    if (inputs_.job.format.empty()) return own_keys(trial);
    io::FormatChanges changes = changes_of(trial);
    changes.keys.insert(changes.keys.end(), changes.environment.begin(), changes.environment.end());
    return changes.keys;
  }

 private:
  template <typename... Args>
  [[nodiscard]] std::string say(const char* key, const Args&... args) const {
    return report::say(language_, key, args...);
  }
  static std::vector<std::string> own_keys(const RemedyTrial& trial) {
    std::vector<std::string> keys;
    for (const PlanSetting& setting : trial.settings()) keys.push_back(setting.key + ": " + setting.text);
    return keys;
  }
  [[nodiscard]] io::FormatChanges changes_of(const RemedyTrial& trial) const {
    const io::ExportJob after = export_job(trial.plan, inputs_.hardware, model_, inputs_.dirs);
    return io::changes_in_format(inputs_.job.format, before_, after, trial.settings(), inputs_.dirs);
  }

  const Inputs& inputs_;
  report::Language language_;
  std::string model_;
  io::ExportJob before_;
};

ListingRow row_of(const char* kind, const RemedyTrial& trial, const Spelling& spelling) {
  std::vector<std::string> ids, settings;
  for (const Remedy& remedy : trial.remedies) ids.push_back(remedy.id);
  for (const PlanSetting& setting : trial.settings()) settings.push_back(setting.key + "=" + setting.text);
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
           {"options", report::settings_text(trial)},
           {"keys", spelling.keys(trial)}}};
}

Listing listing_of(const RemedyPlan& plan, const Spelling& spelling) {
  Listing listing;
  for (const RemedyTrial& trial : plan.single) listing.rows.push_back(row_of("single", trial, spelling));
  for (const RemedyTrial& trial : plan.together) listing.rows.push_back(row_of("together", trial, spelling));
  if (plan.smallest) listing.rows.push_back(row_of("smallest", *plan.smallest, spelling));
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
  const Spelling spelling(inputs, arguments.positional(0), language);
  const auto lines = [&](const RemedyTrial& trial) { return spelling.lines(trial); };
  output.out = format == "table" ? report::render_remedies(plan, language, terminal_width(), lines)
                                 : render_listing(listing_of(plan, spelling), format);
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
