// Hugging Face's TrainingArguments.
#include "io/exporters/formats.h"

namespace membill::io {

void write_checkpointing_arguments(const ExportJob& job, KeyWriter& writer) {
  const bool on = job.plan.checkpointing.mode == Checkpointing::full;
  writer.set("gradient_checkpointing", Value::of(on));
  if (on) writer.set("gradient_checkpointing_kwargs.use_reentrant", Value::of(job.plan.checkpointing.reentrant));
}

void write_training_arguments(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  const std::string compute = compute_word(PlanText(plan));
  writer.set("per_device_train_batch_size", Value::of(plan.batch));
  writer.set("gradient_accumulation_steps", Value::of(plan.accumulate));
  const bool autocast = plan.precision != Precision::pure_bf16 && plan.precision != Precision::pure_fp16;
  writer.set("bf16", Value::of(compute == "bf16" && autocast));
  if (compute == "fp16" && autocast) writer.set("fp16", Value::of(true));
  writer.set("optim", Value::of(trainer_optimizer(plan, problems)));
  if (const std::string text = optimizer_argument_text(plan); !text.empty()) writer.set("optim_args", Value::of(text));
  writer.set("max_grad_norm", Value::of(plan.clip ? 1.0 : 0.0));
  if (plan.compile) writer.set("torch_compile", Value::of(true));
  if (plan.save.state != "none") writer.set("save_strategy", Value::of("steps"));
  if (plan.save.state != "none" && !plan.save.optimizer) writer.set("save_only_model", Value::of(true));
  if (!plan.evaluation.batch) return;
  writer.set("eval_strategy", Value::of("steps"));
  writer.set("per_device_eval_batch_size", Value::of(*plan.evaluation.batch));
}

void write_sharding_arguments(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  require_engine(job, {Engine::torch, Engine::ddp, Engine::deepspeed, Engine::fsdp, Engine::fsdp2},
                 "Hugging Face's Trainer", problems);
  const PlanText plan(job.plan);
  if (job.plan.engine == Engine::deepspeed) return writer.set("deepspeed", deepspeed_tree(job, false));
  if (job.plan.engine == Engine::fsdp || job.plan.engine == Engine::fsdp2) {
    std::string words = job.plan.sharding.fsdp;
    if (plan.word("sharding.wrap") != "none") words += " auto_wrap";
    if (job.plan.sharding.offload != "none") words += " offload";
    writer.set("fsdp", Value::of(words));
    return writer.set("fsdp_config", fsdp_tree(job, "", false));
  }
  if (const Value* bucket = plan.find("sharding.bucket_cap_mb")) writer.set("ddp_bucket_cap_mb", *bucket);
  if (const Value* unused = plan.find("sharding.find_unused_parameters"))
    writer.set("ddp_find_unused_parameters", *unused);
}

}  // namespace membill::io
