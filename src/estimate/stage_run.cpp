#include "estimate/stage_run.h"

#include "blocks/generations.h"
#include "membill/catalog.h"

namespace membill {
namespace {

bool runs_trl(const TrainingPlan& plan) { return generations(plan).trl != Generations::Trl::none; }

// DPO and KTO compare with a reference unless its log-probabilities were computed before.
bool has_reference(const TrainingPlan& plan) {
  if (plan.stage != Stage::dpo && plan.stage != Stage::kto) return false;
  return plan.reference.value_or("model") != "precompute";
}

bool is_head(const TensorSpec& tensor) { return tensor.role == TensorRole::head; }

}  // namespace

ModelSpec staged_model(const ModelSpec& model, const TrainingPlan& plan) {
  if (plan.stage != Stage::reward || !model.dimensions_known) return model;
  ModelSpec scored = model;
  for (Section& section : scored.sections)
    for (LayerKind& kind : section.kinds) std::erase_if(kind.tensors, is_head);
  LayerKind head;
  TensorSpec score;
  score.name = std::string(kScoreHead) + ".weight";
  score.shape = {1, model.hidden};
  score.role = TensorRole::head;
  score.module = ModuleKind::linear;
  head.tensors.push_back(score);
  Section section;
  section.name = "head";
  section.kinds.push_back(head);
  scored.sections.push_back(section);
  return scored;
}

TrainingPlan as_engine_runs(const TrainingPlan& plan) {
  TrainingPlan run = plan;
  const bool megatron = plan.engine == Engine::megatron;
  if (megatron && plan.implementation == Implementation::hf) run.implementation = Implementation::megatron;
  const bool bf16 = plan.precision == Precision::amp_bf16;
  if ((!megatron && plan.engine != Engine::deepspeed) || (!bf16 && plan.precision != Precision::amp_fp16)) return run;
  run.precision = bf16 ? Precision::master_bf16 : Precision::master_fp16;
  if (!weight_format(plan.weights).quantized) run.weights = bf16 ? WeightFormat::bf16 : WeightFormat::fp16;
  return run;
}

namespace {

// Its checkpoints are reentrant. Selective ones lie inside of its layers, none around them.
CheckpointPlan as_megatron_recomputes(CheckpointPlan plan) {
  plan.reentrant = true;
  if (plan.mode != Checkpointing::selective) return plan;
  plan.mode = Checkpointing::none;
  if (plan.selective.empty()) plan.selective = {"core_attn"};
  return plan;
}

}  // namespace

TrainingPlan staged_plan(const ModelSpec& model, const TrainingPlan& plan) {
  TrainingPlan staged = as_engine_runs(plan);
  if (writes_attention_out(model.model_type)) staged.attention = AttentionKernel::eager;
  if (plan.engine == Engine::megatron) staged.checkpointing = as_megatron_recomputes(plan.checkpointing);
  if (plan.stage == Stage::reward && has_adapters(plan)) staged.adapter.modules_to_save.emplace_back(kScoreHead);
  return staged;
}

bool runs_preference_stage(const TrainingPlan& plan) {
  return plan.stage == Stage::dpo || plan.stage == Stage::kto || plan.stage == Stage::orpo ||
         plan.stage == Stage::simpo;
}

StageRun::StageRun(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan, const Dims& dims, bool expand)
    : plan_(plan), dims_(dims), reference_(has_reference(plan)) {
  if (!reference_ || has_adapters(plan)) return;  // with adapters, the base model is the reference
  // TRL does not freeze it, so autocast caches 16-bit copies of its weights like the policy's.
  reference_model_ = build_modules(recorder, model, plan, dims, expand, "weights.reference");
}

std::vector<DType> StageRun::further_batch_tensors() const {
  std::vector<DType> types{DType::int64};
  const bool joined = joins_rows(plan_);
  if (runs_trl(plan_) || joined) types.push_back(DType::int64);
  if (joined && generations(plan_).trl == Generations::Trl::fused) types.push_back(DType::int32);
  return types;
}

Size StageRun::counted() const {
  if (plan_.completion) return dims_.samples * Size(*plan_.completion);
  return dims_.N - dims_.samples;
}

Tensor StageRun::forward(Forward& f, const Architecture& architecture, JobModules& job, const Tensor& ids,
                         Tensor* outputs) {
  if (!runs_trl(plan_)) return causal_lm_forward(f, architecture, job.model, ids, outputs);
  ReferenceModel reference;
  reference.modules = reference_model_ ? &reference_model_->model : &job.model;
  reference.adapters = !has_adapters(plan_);
  return trl_forward(f, architecture, job.model, reference_ ? &reference : nullptr, ids, counted());
}

}  // namespace membill
