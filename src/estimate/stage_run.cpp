#include "estimate/stage_run.h"

#include <algorithm>

#include "blocks/architecture.h"
#include "blocks/deepspeed_checkpoint.h"
#include "blocks/generations.h"
#include "blocks/llamafactory.h"
#include "blocks/stage_args.h"
#include "blocks/torchtune_pairs.h"
#include "blocks/trl_grpo.h"
#include "blocks/trl_liger.h"
#include "catalog/encoder_classifier.h"
#include "estimate/code_range.h"
#include "estimate/engines/ddp.h"
#include "estimate/engines/placement.h"
#include "estimate/inference.h"
#include "estimate/megatron_adapters.h"
#include "membill/catalog.h"

namespace membill {
namespace {

constexpr std::int64_t kUnsaidLabels = 2;  // transformers configuration_utils.py num_labels

// A decoder, or an encoder whose classifier is known.
bool has_classifier(const ModelSpec& model) {
  if (has_encoder_classifier(model.model_type)) return true;
  const Architecture* program = find_architecture(model.model_type, Implementation::hf);
  return (program == nullptr || program->causal()) &&
         std::none_of(model.sections.begin(), model.sections.end(),
                      [](const Section& section) { return section.name == "encoder"; });
}

// As the plan says, or the class that the model's file names, which only Transformers heeds.
bool classifies(const ModelSpec& model, const TrainingPlan& plan) {
  const bool heeds = !has_own_model_code(plan) && plan.engine != Engine::megatron && has_classifier(model);
  return plan.stage == Stage::classification || (is_supervised(plan) && model.labels > 0 && heeds);
}

bool runs_trl(const TrainingPlan& plan) { return generations(plan).trl != Generations::Trl::none; }

bool is_head(const TensorSpec& tensor) { return tensor.role == TensorRole::head; }

Section section_of(const std::string& name, const TensorSpec& tensor) {
  Section section;
  section.name = name;
  section.kinds.emplace_back();
  section.kinds.back().tensors.push_back(tensor);
  return section;
}

// litgpt's GPT never ties them, unless train.tie_embeddings says so (litgpt 0.5.13 model.py).
ModelSpec untied_model(const ModelSpec& model) {
  ModelSpec untied = model;
  untied.tied_embeddings = false;
  TensorSpec head;
  head.name = "lm_head.weight";
  head.shape = {model.vocab, model.hidden};
  head.role = TensorRole::head;
  head.module = ModuleKind::linear;
  untied.sections.push_back(section_of("head", head));
  return untied;
}

}  // namespace

bool has_reference(const TrainingPlan& plan) {
  if (plan.stage == Stage::ppo) return true;
  if (plan.stage == Stage::grpo) return plan.beta.value_or(0) != 0;
  if (plan.stage != Stage::dpo && plan.stage != Stage::kto) return false;
  return plan.reference.value_or("model") != "precompute";
}

bool saves_on_host(const TrainingPlan& plan) {
  const bool hooked = is_supervised(plan) || runs_torchtune_pairs(plan) || runs_torchtune_distillation(plan);
  if (!plan.checkpointing.offload || !hooked) return false;
  if (plan.implementation == Implementation::torchtune)
    return plan.engine == Engine::torch || plan.engine == Engine::fsdp2;
  return plan.checkpointing.mode == Checkpointing::none && runs_trl(plan) &&
         (plan.engine == Engine::torch || plan.engine == Engine::ddp);
}

// torchtitan 0.2.2 train.py: the step's variables and the batches' generator hold a batch on the card until the next.
bool holds_variables(const TrainingPlan& plan) {
  return plan.keep_outputs || plan.implementation == Implementation::torchtitan || holds_reference_logits(plan);
}

ModelSpec staged_model(const ModelSpec& model, const TrainingPlan& plan) {
  if (classifies(model, plan) && model.dimensions_known) {
    const std::int64_t labels =
        stage_count(plan, "num_labels").value_or(model.labels > 0 ? model.labels : kUnsaidLabels);
    return has_encoder_classifier(model.model_type) ? with_encoder_classifier(model, labels)
                                                    : scored_model(model, labels);
  }
  if (plan.stage == Stage::reward && model.dimensions_known && !runs_llamafactory(plan)) return scored_model(model);
  return plan.implementation == Implementation::litgpt && model.tied_embeddings ? untied_model(model) : model;
}

ModelSpec scored_model(const ModelSpec& model, std::int64_t scores) {
  ModelSpec scored = model;
  for (Section& section : scored.sections)
    for (LayerKind& kind : section.kinds) std::erase_if(kind.tensors, is_head);
  TensorSpec score;
  score.name = std::string(kScoreHead) + ".weight";
  score.shape = {scores, model.hidden};
  score.role = TensorRole::head;
  score.module = ModuleKind::linear;
  scored.sections.push_back(section_of("head", score));
  return scored;
}

TrainingPlan as_engine_runs(const TrainingPlan& plan) {
  TrainingPlan run = plan;
  const bool megatron = plan.engine == Engine::megatron;
  if (megatron && plan.implementation == Implementation::hf) run.implementation = Implementation::megatron;
  if (megatron && plan.method == Method::lora) run.adapter = as_megatron_adapts(plan.adapter);
  const bool bf16 = plan.precision == Precision::amp_bf16;
  if ((!megatron && plan.engine != Engine::deepspeed) || (!bf16 && plan.precision != Precision::amp_fp16)) return run;
  if (runs_torch_autocast(plan)) return run;
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

// peft.TaskType.SEQ_CLS: modules "classifier" and "score" are saved, an encoder's with what it holds, and get no adapters.
void save_scores(const ModelSpec& model, AdapterPlan& adapter) {
  adapter.modules_to_save.emplace_back(kScoreHead);
  if (!has_encoder_classifier(model.model_type)) return;
  for (const char* module : {"classifier", "classifier.dense", "classifier.out_proj"}) {
    adapter.modules_to_save.emplace_back(module);
    adapter.exclude.emplace_back(module);
  }
}

// trl 1.16 trainer/sft_trainer.py, dpo_trainer.py: PEFT under ZeRO-3 is checkpointed reentrantly, whatever is asked.
bool forces_reentrant(const TrainingPlan& plan) {
  const bool zero3 = plan.engine == Engine::deepspeed && plan.sharding.zero == 3;
  return zero3 && has_adapters(plan) && plan.checkpointing.mode == Checkpointing::full &&
         generations(plan).trl == Generations::Trl::fused;
}

// disable_dropout, which is on in TRL's configurations of these stages, and in LLaMA-Factory's trainers of pairs: modules that drop
// out do nothing, those of the adapters among them (trl 1.16 trainer/utils.py disable_dropout_in_model).
bool disables_dropout(const TrainingPlan& plan) {
  if (plan.engine == Engine::megatron || stage_word(plan, "disable_dropout") == "false") return false;
  if (plan.stage == Stage::reward) return !runs_llamafactory(plan);
  if (runs_torchtune_pairs(plan)) return plan.method == Method::full;
  return runs_preference_stage(plan) || plan.stage == Stage::ppo;
}

}  // namespace

TrainingPlan staged_plan(const ModelSpec& model, const TrainingPlan& plan) {
  const TrainingPlan programmed = as_programmed(model, plan);
  TrainingPlan staged = plan.stage == Stage::inference ? served_plan(programmed) : as_engine_runs(programmed);
  if (writes_attention_out(model.model_type, staged.attention)) staged.attention = AttentionKernel::eager;
  if (runs_megatron_layers(plan)) staged.checkpointing = as_megatron_recomputes(plan.checkpointing);
  if (forces_reentrant(plan) || calls_deepspeed_checkpoint(plan)) staged.checkpointing.reentrant = true;
  if (classifies(model, plan)) staged.stage = Stage::classification;
  if (runs_liger_loss(plan) && plan.stage_args.count("use_liger_loss") == 0) {
    staged.implementation = Implementation::hf;
    staged.stage_args["use_liger_loss"] = "true";
  }
  if (disables_dropout(plan)) {
    staged.adapter.dropout = 0;
    if (model.model_type == "gpt2") staged.dropout = 0;  // its dropouts are modules, too
  }
  if (plan.stage == Stage::ppo) staged.clip = false;  // its loop has none
  const bool scores =
      staged.stage == Stage::classification || (plan.stage == Stage::reward && !runs_llamafactory(plan));
  if (scores && has_adapters(plan)) save_scores(model, staged.adapter);
  return staged;
}

bool runs_preference_stage(const TrainingPlan& plan) {
  return plan.stage == Stage::dpo || plan.stage == Stage::kto || plan.stage == Stage::orpo ||
         plan.stage == Stage::simpo;
}

StageRun::StageRun(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware,
                   const Dims& dims, bool expand, JobModules& job)
    : plan_(plan), reference_(has_reference(plan)) {
  if (plan.stage == Stage::grpo) rollout_.emplace(recorder, plan, dims, woken_bytes(plan, hardware));
  if (plan.stage == Stage::distill && model.teacher != nullptr)
    teacher_ = std::make_unique<TeacherRun>(recorder, model, plan, hardware, expand);
  if (plan.stage == Stage::ppo) ppo_ = std::make_unique<PpoRun>(recorder, model, plan, dims, expand, job);
  // LLaMA-Factory's reward model keeps the head of its language model, which gets no gradient and so no states.
  if (plan.stage == Stage::reward && runs_llamafactory(plan))
    std::erase_if(job.trained, [](const TrainedParameter& trained) { return trained.role == TensorRole::head; });
  if (!reference_ || has_adapters(plan)) return;  // with adapters, the base model is the reference
  reference_model_ = std::make_unique<ReferenceRun>(recorder, model, plan, hardware, dims, expand);
}

ReferenceModel StageRun::reference(JobModules& job) {
  if (reference_model_) return reference_model_->model();
  return {&job.model, !has_adapters(plan_)};
}

void StageRun::prepare(Forward& f, const Architecture& architecture, JobModules& job, std::optional<DType> autocast) {
  const ReferenceModel compared = reference(job);
  if (ppo_) return ppo_->rollout(f, architecture, job, compared);
  rollout_->run(f, architecture, job, reference_ ? &compared : nullptr, autocast);
}

std::vector<DType> StageRun::further_batch_tensors() const {
  if (plan_.stage == Stage::classification) return {DType::int64};  // the mask; labels are one a row
  std::vector<DType> types{DType::int64};
  const bool joined = joins_rows(plan_);
  if (runs_trl(plan_) || joined) types.push_back(DType::int64);
  if (joined && generations(plan_).trl == Generations::Trl::fused) types.push_back(DType::int32);
  return types;
}

Size StageRun::counted(const Dims& dims) const {
  if (rollout_) return dims.b * rollout_->sizes().completion;
  if (plan_.completion) return dims.samples * Size(*plan_.completion);
  return dims.N - dims.samples;
}

namespace {

// torch 2.15 nn/parallel/distributed.py _DDPSink copies what the model returned: under Accelerate's autocast the fp32 copies of it
// (utils/operations.py convert_outputs_to_fp32).
Tensor copied_by_ddp(Forward& f, Tensor logits) {
  Recorder& r = f.r;
  if (!logits.defined()) return logits;
  r.set_items(f.items.loss_upcast);
  if (r.autocast() && f.plan.loop == Loop::trainer) {
    r.forget_copies();
    logits = r.cast(std::move(logits), DType::fp32);
  }
  return r.empty(logits.shape(), logits.dtype(), "DDP's copy of the logits");
}

}  // namespace

Tensor StageRun::forward(Forward& f, const Architecture& architecture, JobModules& job, const Tensor& ids,
                         Tensor* outputs) {
  const bool own_loss =
      plan_.stage == Stage::classification || (is_supervised(plan_) && !runs_trl(plan_) && !smooths_labels(plan_));
  if (own_loss && looks_for_unused(plan_)) {
    Tensor logits, loss = causal_lm_forward(f, architecture, job.model, ids, &logits);
    logits = copied_by_ddp(f, std::move(logits));
    if (outputs != nullptr) *outputs = std::move(logits);
    return loss;
  }
  if (own_loss) return causal_lm_forward(f, architecture, job.model, ids, outputs);
  if (ppo_) return ppo_->loss(f, architecture, job, ids);
  if (teacher_) return teacher_->loss(f, architecture, job.model, ids);
  if (rollout_) return grpo_loss(f, architecture, job.model, ids, counted(f.dims));
  const ReferenceModel compared = reference(job);
  if (runs_torchtune_pairs(plan_)) return torchtune_pairs(f, architecture, job.model, compared, ids);
  if (runs_llamafactory(plan_))
    return llamafactory_forward(f, architecture, job.model, reference_ ? &compared : nullptr, ids, counted(f.dims));
  return trl_forward(f, architecture, job.model, reference_ ? &compared : nullptr, ids, counted(f.dims));
}

}  // namespace membill
