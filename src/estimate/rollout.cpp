#include "estimate/rollout.h"

#include "blocks/generate.h"
#include "blocks/parameter_reader.h"
#include "blocks/stage_args.h"
#include "blocks/trl_grpo.h"

namespace membill {
namespace {

// vLLM's log-probabilities are compared with those of the model itself.
bool corrects_sampling(const TrainingPlan& plan) {
  return stage_flag(plan, "use_vllm") && stage_word(plan, "vllm_importance_sampling_correction") != "false";
}

}  // namespace

bool generates(Stage stage) { return stage == Stage::grpo || stage == Stage::ppo; }

RolloutSizes rollout_sizes(SymbolTable& symbols, const TrainingPlan& plan, const Dims& dims) {
  RolloutSizes sizes;
  if (plan.completion)
    sizes.completion = Size(*plan.completion);
  else
    sizes.completion = plan.prompt ? dims.s - Size(*plan.prompt) : symbols.ceil_div(dims.s, Size(2));
  sizes.prompt = dims.s - sizes.completion;
  sizes.batches = stage_count(plan, "steps_per_generation").value_or(plan.accumulate);
  sizes.every = checked_mul(sizes.batches, stage_count(plan, "num_iterations").value_or(1));
  return sizes;
}

Rollout::Rollout(Recorder& recorder, const TrainingPlan& plan, const Dims& dims)
    : r_(recorder), plan_(plan), dims_(dims), sizes_(rollout_sizes(recorder.symbols(), plan, dims)) {}

bool Rollout::is_due(std::int64_t micro_batch) const {
  return micro_batch == 0 || (micro_batch == 1 && sizes_.every < plan_.accumulate);
}

void Rollout::run(Forward& f, const Architecture& architecture, JobModules& job, const ReferenceModel* reference,
                  std::optional<DType> autocast) {
  r_.writer().moment("generate");
  const Size rows = dims_.b * Size(sizes_.batches);
  // PEFT's generate() calls the base model's forward, which is not the one that Accelerate put autocast around.
  const std::optional<DType> generating = has_adapters(plan_) ? std::nullopt : autocast;
  if (!stage_flag(plan_, "use_vllm")) generate(f, architecture, job, rows, generating);
  r_.writer().moment("score");
  const ItemId item = r_.writer().item("activations.inputs");
  const auto column = [&](const Size& elements, DType type, const char* label) {
    return r_.empty({elements, Size(1)}, type, label, item);
  };
  const Size tokens = rows * dims_.s, completions = rows * sizes_.completion;
  std::vector<Tensor> fresh;
  for (const char* label : {"prompts", "mask of the prompts"})
    fresh.push_back(column(rows * sizes_.prompt, DType::int64, label));
  for (const char* label : {"completions", "mask of the completions"})
    fresh.push_back(column(completions, DType::int64, label));
  {
    const Tensor joined = column(tokens, DType::int64, "prompts and completions");
    const Tensor mask = column(tokens, DType::int64, "mask of prompts and completions");
    if (autocast) r_.begin_autocast(*autocast);
    score(f, architecture, job, reference);
    if (autocast) r_.end_autocast();
    if (drifts()) fresh.push_back(column(completions, DType::fp32, "old log-probabilities"));
    if (corrects_sampling(plan_)) fresh.push_back(column(completions, DType::fp32, "log-probabilities of vLLM"));
    if (reference != nullptr) fresh.push_back(column(completions, DType::fp32, "log-probabilities of the reference"));
  }
  std::vector<Tensor> shuffled;
  shuffled.reserve(fresh.size());
  for (const Tensor& tensor : fresh) shuffled.push_back(r_.empty(tensor.shape(), tensor.dtype(), "shuffled", item));
  fresh.clear();
  buffered_ = std::move(shuffled);
}

bool Rollout::drifts() const { return plan_.accumulate % sizes_.every != 0 || corrects_sampling(plan_); }

// Where the engine gathers the whole model for it, nothing of the engine acts until it is over.
void Rollout::generate(Forward& f, const Architecture& architecture, JobModules& job, const Size& rows,
                       std::optional<DType> autocast) {
  auto* reader = dynamic_cast<ParameterReader*>(f.hooks);
  const std::vector<Tensor> whole = reader == nullptr ? std::vector<Tensor>() : reader->gather_all();
  ForwardHooks* const hooks = f.hooks;
  ParameterUse* const use = r_.parameter_use();
  if (!whole.empty()) {
    f.hooks = nullptr;
    r_.set_parameter_use(nullptr);
  }
  generate_completions(f, architecture, job.model, {rows, sizes_.prompt, sizes_.completion}, autocast);
  f.hooks = hooks;
  r_.set_parameter_use(use);
}

// Micro-batch after micro-batch: the policy where its log-probabilities of now will be old by then, the reference where there is one.
void Rollout::score(Forward& f, const Architecture& architecture, JobModules& job, const ReferenceModel* reference) {
  const Tensor ids = r_.empty({dims_.N, Size(1)}, DType::int64, "prompts and completions of a micro-batch");
  const Size counted = dims_.b * sizes_.completion;
  if (drifts()) grpo_score(f, architecture, {&job.model, true}, ids, counted);
  if (reference != nullptr) grpo_score(f, architecture, *reference, ids, counted);
}

}  // namespace membill
