#include "estimate/ppo_run.h"

#include "blocks/generate.h"
#include "blocks/stage_args.h"
#include "estimate/stage_run.h"

namespace membill {
namespace {

constexpr std::int64_t kRolloutBatch = 64;  // local_rollout_forward_batch_size

// Trained or frozen whole: adapters are the policy's alone.
TrainingPlan whole_model(const TrainingPlan& plan, bool trains) {
  TrainingPlan result = plan;
  result.method = trains ? Method::full : Method::freeze;
  result.freeze = {};
  result.freeze.trainable_layers = 0;
  if (trains && !(plan.weights == WeightFormat::fp32 || plan.weights == WeightFormat::fp16))
    result.weights = WeightFormat::bf16;
  return result;
}

Dims with_sections_of(const Dims& dims, const ModelSpec& model) {
  Dims result = dims;
  while (result.kinds.size() < model.sections.size()) result.kinds.emplace_back(1);
  return result;
}

}  // namespace

PpoRun::PpoRun(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan, const Dims& dims, bool expand,
               JobModules& job)
    : r_(recorder),
      plan_(plan),
      dims_(dims),
      sizes_(rollout_sizes(recorder.symbols(), plan, dims)),
      rows_(dims.b * Size(checked_mul(plan.accumulate, stage_count(plan, "num_mini_batches").value_or(1)))),
      scored_(scored_model(model)),
      value_plan_(whole_model(plan, true)),
      reward_plan_(whole_model(plan, false)),
      scored_dims_(with_sections_of(dims, scored_)),
      value_(build_modules(recorder, scored_, value_plan_, scored_dims_, expand, "weights.value")),
      reward_(build_modules(recorder, scored_, reward_plan_, scored_dims_, expand, "weights.reward")) {
  const std::int64_t most = stage_count(plan, "local_rollout_forward_batch_size").value_or(kRolloutBatch);
  chunk_ = recorder.symbols().at_least(rows_, most) ? Size(most) : rows_;
  job.trained.insert(job.trained.end(), value_.trained.begin(), value_.trained.end());
  job.trainable_elements = checked_add(job.trainable_elements, value_.trainable_elements);
}

// generate() keeps each token's scores in fp32; they are stacked for each chunk of rows, and the chunks' joined.
void PpoRun::generate(Forward& f, const Architecture& architecture, JobModules& job) {
  const ItemId item = r_.writer().item("loss.logits");
  const auto scores = [&](const Size& rows, const char* label) {
    return r_.empty({rows * sizes_.completion, dims_.V}, DType::fp32, label, item);
  };
  const Tensor before = scores(rows_ - chunk_, "scores of the rows before");
  CompletionSizes sizes{chunk_, sizes_.prompt, sizes_.completion};
  sizes.keep_scores = true;
  const Tensor kept = generate_completions(f, architecture, job.model, sizes, std::nullopt);
  Tensor stacked = scores(chunk_, "scores of the rows, stacked");
  logits_ = scores(rows_, "scores of all rows");
}

void PpoRun::rollout(Forward& f, const Architecture& architecture, JobModules& job, const ReferenceModel& reference) {
  r_.writer().moment("generate");
  generate(f, architecture, job);
  r_.writer().moment("score");
  const ItemId inputs = r_.writer().item("activations.inputs");
  const Size completions = rows_ * sizes_.completion;
  buffered_.clear();
  buffered_.push_back(r_.empty({rows_ * dims_.s, Size(1)}, DType::int64, "prompts and completions", inputs));
  buffered_.push_back(r_.empty({completions, Size(2)}, DType::int64, "completions", inputs));
  // Log-probabilities of policy and reference, values, rewards, advantages, returns.
  buffered_.push_back(r_.empty({completions, Size(6)}, DType::fp32, "what the completions came to", inputs));
  TrainingPlan plan = plan_;
  plan.checkpointing.mode = Checkpointing::none;
  Dims dims = dims_;
  dims.b = dims.samples = chunk_;
  dims.N = chunk_ * dims.s;
  Forward scoring{r_, f.model, plan, dims, f.items, f.stream};
  scoring.quiet = true;
  const Tensor chunk = r_.view(logits_, {chunk_ * sizes_.completion, dims_.V});
  ppo_score(scoring, architecture, reference, value(), {scored_, scored_dims_, reward_.model}, chunk,
            chunk_ * sizes_.completion);
}

Tensor PpoRun::loss(Forward& f, const Architecture& architecture, JobModules& job, const Tensor& ids) {
  return ppo_loss(f, architecture, job.model, value(), ids, f.dims.b * sizes_.completion, outputs_);
}

}  // namespace membill
