#include "membill/estimate.h"

#include <algorithm>
#include <vector>

#include "blocks/architecture.h"
#include "blocks/generations.h"
#include "blocks/sequence_spread.h"
#include "estimate/bill.h"
#include "estimate/code_range.h"
#include "estimate/distinct_ranks.h"
#include "estimate/engines/placement.h"
#include "estimate/generation_range.h"
#include "estimate/image_notes.h"
#include "estimate/inference.h"
#include "estimate/loading.h"
#include "estimate/megatron_adapters.h"
#include "estimate/parameters.h"
#include "estimate/plan_warnings.h"
#include "estimate/rank_model.h"
#include "estimate/saving.h"
#include "estimate/simulation.h"
#include "estimate/split_model.h"
#include "estimate/stage_run.h"
#include "estimate/stored_weights.h"
#include "estimate/verdict.h"
#include "membill/catalog.h"
#include "membill/vision_part.h"

namespace membill {
namespace {

std::int64_t trainable_parameters(const ModelSpec& model, const TrainingPlan& plan, const Simulation& job) {
  if (splits_layers(plan)) return model.parameters();
  if (!runs_megatron_layers(plan)) return job.trainable_parameters;
  if (has_adapters(plan)) return megatron_adapter_parameters(model, plan);
  std::int64_t idle = 0;
  for (const Section& section : model.sections)
    for (const TensorSpec& tensor : section.kinds.front().tensors)
      idle += is_vision_part(section) ? tensor.elements() : 0;
  return model.parameters() - idle;
}

void describe_inputs(Report& report, const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware,
                     const Simulation& job) {
  report.model = {model.name,
                  model.model_type,
                  model.parameters(),
                  model.active_parameters(),
                  trainable_parameters(model, plan, job),
                  model.layers,
                  model.hidden,
                  model.vocab,
                  model.source};
  report.plan = write_plan_fields(plan);
  if (hardware.gpu)
    report.hardware.name = hardware.gpu->short_name.empty() ? hardware.gpu->name : hardware.gpu->short_name;
  report.hardware.count = hardware.count;
  report.hardware.nodes = hardware.nodes;
  if (const auto usable = hardware.usable()) report.hardware.usable_bytes = usable->count();
  if (hardware.host_ram) report.hardware.host_bytes = hardware.host_ram->count();
  report.assumptions = job.assumptions;
  if (runs_preference_stage(plan) && !plan.completion)
    report.assumptions.push_back("completion: every token of a sequence counts; completion says how many do");
  if (generates(plan.stage) && !plan.completion && !plan.prompt)
    report.assumptions.push_back("completion: half of a sequence is generated; completion or prompt says how much is");
  if (std::string note = packing_note(plan); !note.empty()) report.assumptions.push_back(std::move(note));
  if (std::string note = colocation_note(plan); !note.empty()) report.assumptions.push_back(std::move(note));
  if (std::string note = saving_note(model, plan, hardware, job.trainable_parameters); !note.empty())
    report.assumptions.push_back(std::move(note));
  for (std::string& note : image_notes(model, plan)) report.assumptions.push_back(std::move(note));
  if (const std::string releases = assumed_releases(plan); !releases.empty())
    report.assumptions.push_back("software: " + releases + "; a job file's `software` names others");
  report.assumptions.insert(report.assumptions.end(), hardware.assumptions.begin(), hardware.assumptions.end());
  report.warnings = job.warnings;
  report.warnings.insert(report.warnings.end(), model.warnings.begin(), model.warnings.end());
  for (std::string& warning : plan_warnings(model, plan)) report.warnings.push_back(std::move(warning));
  for (const std::string& part : model.not_counted) report.warnings.push_back(part + " is not counted");
  for (const SymbolTable::Entry& entry : job.symbols.entries())
    if (!entry.derived || entry.name == "N") report.symbols.push_back({entry.name, entry.meaning, entry.value});
}

}  // namespace

namespace {

// Where another program bounds the code that runs, its total is the other end of the range.
void add_code_range(Report& report, const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware) {
  const std::optional<CodeRange> range = code_range(model, plan);
  if (!range) return;
  report.assumptions.push_back(range->assumption);
  if (!range->other) return;
  const Simulation other = simulate(with_sections(model), *range->other, hardware);
  widen(report, fold_peak(other.trace, other.trace.evaluate(other.symbols)).highest);
}

Report estimate_rank(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware,
                     const EstimateOptions& options) {
  const Simulation job = simulate(with_sections(model), plan, hardware);
  Report report;
  describe_inputs(report, model, plan, hardware, job);
  const Bill bill = make_bill(job, plan, hardware);
  report.at_least = !job.activations_known;
  report.items = bill.items;
  report.moments = bill.moments;
  if (options.timeline) report.timeline = make_timeline(job, bill);
  report.peak_moment = bill.peak_moment;
  report.peak_rank = bill.rank;
  judge(report, job, bill, plan, hardware, options);
  const Loading loading = loading_of(model, plan, hardware);
  judge_loading(report, loading, hardware);
  if (std::string note = loading_note(loading, hardware); !note.empty()) report.assumptions.push_back(std::move(note));
  add_code_range(report, model, plan, hardware);
  mark_generation(report, model, plan);
  if (plan.stage == Stage::inference)
    for (std::string& note : inference_notes(report, plan, hardware)) report.assumptions.push_back(std::move(note));
  return report;
}

}  // namespace

bool models_activations(const ModelSpec& model) {
  return model.dimensions_known && find_architecture(model.model_type, Implementation::hf) != nullptr;
}

namespace {

// Whose code runs the job where a plan does not say it, and what an engine makes of it.
void state_engine_assumptions(const ModelSpec& model, const TrainingPlan& given, const TrainingPlan& plan,
                              std::vector<std::string>& assumptions) {
  if (plan.precision != given.precision)
    assumptions.push_back("precision: " + std::string(plan.engine == Engine::megatron ? "Megatron" : "DeepSpeed") +
                          " runs " + std::string(regime(given.precision).name) + " as " +
                          std::string(regime(plan.precision).name) + ", with fp32 masters in its optimizer");
  if (runs_mics(plan)) assumptions.push_back("MiCS: as DeepSpeed 0.18 runs it, which 0.19.8 no longer does");
  if (plan.implementation != given.implementation)
    assumptions.push_back("implementation: Megatron runs its own layers");
  if (plan.engine == Engine::megatron && std::any_of(model.sections.begin(), model.sections.end(), is_vision_part))
    assumptions.push_back(
        "vision tower: whole and frozen on every rank of the first stage, as Megatron-SWIFT 4.6 has it, and idle: "
        "batches are billed as text");
  if (plan.engine == Engine::megatron && has_adapters(plan))
    assumptions.push_back(
        "adapters: on Megatron's joined linears and in the type of the weights, as Megatron-SWIFT 4.6 puts them there");
  if (sequence_ranks(plan) > 1 && plan.sharding.engine_keys.count("sequence_code") == 0)
    assumptions.emplace_back(
        "sequences over ranks: by DeepSpeed's Ulysses or torch's context_parallel, as accelerate runs them; "
        "sharding.sequence_code says another's");
}

}  // namespace

Report estimate(const ModelSpec& model, const TrainingPlan& given, const Hardware& hardware,
                const EstimateOptions& options) {
  const TrainingPlan plan = as_engine_runs(given);
  std::vector<Report> reports;
  for (const RankKind& kind : distinct_ranks(plan, hardware)) {
    Hardware of_rank = hardware;
    of_rank.rank = kind.rank;
    reports.push_back(estimate_rank(model, plan, of_rank, options));
  }
  const auto highest = [](const Report& a, const Report& b) {
    return *a.totals.requested.likely < *b.totals.requested.likely;
  };
  const auto worst = std::max_element(reports.begin(), reports.end(), highest);
  std::vector<RankBill> ranks;
  ranks.reserve(reports.size());
  for (const Report& of_rank : reports) ranks.push_back(of_rank.ranks.front());
  Report report = std::move(*worst);
  report.ranks = std::move(ranks);
  state_engine_assumptions(model, given, plan, report.assumptions);
  return report;
}

}  // namespace membill
