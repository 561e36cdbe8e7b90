#include "estimate/rollout.h"

#include <algorithm>

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

constexpr std::int64_t kVllmWidth = 2;  // bytes of a parameter as vLLM holds it

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

Rollout::Rollout(Recorder& recorder, const TrainingPlan& plan, const Dims& dims, std::int64_t woken)
    : r_(recorder), plan_(plan), dims_(dims), sizes_(rollout_sizes(recorder.symbols(), plan, dims)), woken_(woken) {}

bool Rollout::is_due(std::int64_t micro_batch) const {
  return micro_batch == 0 || (micro_batch == 1 && sizes_.every < plan_.accumulate);
}

void Rollout::run(Forward& f, const Architecture& architecture, JobModules& job, const ReferenceModel* reference,
                  std::optional<DType> autocast) {
  r_.writer().moment("generate");
  const Size rows = dims_.b * Size(sizes_.batches);
  // PEFT's generate() calls the base model's forward, which is not the one that Accelerate put autocast around.
  const std::optional<DType> generating = has_adapters(plan_) ? std::nullopt : autocast;
  if (stage_flag(plan_, "use_vllm"))
    generate_elsewhere(f, job);
  else
    generate(f, architecture, job, rows, generating);
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

// vLLM has the policy's weights first. One that sleeps is woken for them and for its cache (trl 1.16 generation/vllm_generation.py
// sync_weights, generate).
void Rollout::generate_elsewhere(Forward& f, JobModules& job) {
  const ItemId item = r_.writer().item("rollout.vllm");
  const std::int64_t weights = std::min(woken_, checked_mul(f.model.parameters(), kVllmWidth));
  const auto wake = [&](std::int64_t bytes, const char* label) {
    return bytes == 0 ? Tensor() : r_.empty({Size(bytes), Size(1)}, DType::uint8, label, item);
  };
  if (woken_ > 0) r_.writer().empty_cache();
  {
    const Tensor own_weights = wake(weights, "vLLM's weights");
    hand_weights_over(f, job);
    const Tensor cache = wake(woken_ - weights, "vLLM's cache");
  }
  if (woken_ > 0) r_.writer().empty_cache();
}

// Where an engine gathers the whole model for it, adapters are merged meanwhile.
void Rollout::hand_weights_over(Forward& f, JobModules& job) {
  const ItemId item = r_.writer().item("gathered.parameters");
  const bool merges = has_adapters(plan_);
  const auto merge_all = [&] {
    if (!merges) return;
    merge(job.model.outer, TraceWriter::kNoUnit);
    for (const UnitModules& unit : job.model.units)
      for (const Modules& layer : unit.layers) merge(layer, unit.unit);
  };
  auto* reader = dynamic_cast<ParameterReader*>(f.hooks);
  const auto groups = reader == nullptr ? std::vector<WholeParameters>() : reader->handed_over(merges);
  if (groups.empty()) merge_all();
  for (const WholeParameters& group : groups) {
    r_.writer().visit(group.unit, true);
    std::vector<Tensor> whole;
    for (const Size& bytes : group.bytes)
      whole.push_back(r_.empty({bytes, Size(1)}, DType::uint8, "parameter for vLLM", item));
    if (groups.size() == 1) merge_all();
  }
  r_.writer().visit(TraceWriter::kNoUnit, true);
}

// peft 0.21 tuners/lora/layer.py get_delta_weight: the product of both matrices, then scaled, added in place.
void Rollout::merge(const Modules& modules, int unit) {
  const ItemId item = r_.writer().item("activations.block");
  r_.writer().visit(unit, true);
  for (const auto& module : modules.all()) {
    if (module->adapter == nullptr) continue;
    const Parameter& up = module->adapter->up;
    const Shape shape{up.value.rows(), module->adapter->down.value.width()};
    const Tensor product = r_.empty(shape, up.value.dtype(), "product of an adapter's matrices", item);
    r_.use_matmul_workspace();
    const Tensor scaled = r_.empty(shape, up.value.dtype(), "scaled product of an adapter's matrices", item);
  }
  r_.writer().visit(TraceWriter::kNoUnit, true);
}

// Micro-batch after micro-batch: the policy where its log-probabilities of now will be old by then, the reference where there is one.
void Rollout::score(Forward& f, const Architecture& architecture, JobModules& job, const ReferenceModel* reference) {
  const Tensor ids = r_.empty({dims_.N, Size(1)}, DType::int64, "prompts and completions of a micro-batch");
  const Size counted = dims_.b * sizes_.completion;
  if (drifts()) grpo_score(f, architecture, {&job.model, true}, ids, counted);
  if (reference != nullptr) grpo_score(f, architecture, *reference, ids, counted);
}

}  // namespace membill
