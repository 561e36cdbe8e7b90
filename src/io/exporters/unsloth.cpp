// Unsloth's YAML: blocks training and lora.
#include "base/text.h"
#include "io/exporters/formats.h"
#include "io/importers/formats.h"

namespace membill::io {
namespace {

void write_method(const TrainingPlan& plan, KeyWriter& writer, Problems& problems) {
  const bool full = plan.method == Method::full;
  if (!full && plan.method != Method::lora && plan.method != Method::dora)
    problems.add({"", "method", PlanText(plan).word("method") + " is none of Unsloth's", "lora, dora or full"});
  writer.set("training.training_type", Value::of(full ? "full" : "lora"));
  const std::string weights = PlanText(plan).word("weights");
  writer.set("training.load_in_4bit", Value::of(weights == "nf4"));
  if (weights == "int8") writer.set("load_in_8bit", Value::of(true));
  if (weights == "fp16" || compute_word(PlanText(plan)) == "fp16") writer.set("dtype", Value::of("float16"));
  if (weights == "fp32" && plan.precision == Precision::fp32) writer.set("dtype", Value::of("float32"));
  if (full) return;
  constexpr LoraKeys kKeys{"lora.lora_r",  "lora.lora_alpha", "lora.lora_dropout", "lora.target_modules", "",
                           "lora.use_dora"};
  const std::vector<std::string>& targets = plan.adapter.targets;
  if (targets.size() == 1 && targets[0] == "all-linear") writer.set("lora.vision_all_linear", Value::of(true));
  write_lora(plan, kKeys, writer);
}

std::string checkpointing_word(const CheckpointPlan& plan) {
  if (plan.mode == Checkpointing::none) return "none";
  return plan.offload ? "unsloth" : "true";
}

std::string optimizer_word(const TrainingPlan& plan, Problems& problems) {
  if (plan.optimizer == "adamw" && plan.optimizer_impl != OptimizerImpl::fused) return "adamw_torch";
  return trainer_optimizer(plan, problems);
}

Value write(const ExportJob& job, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  KeyWriter writer({unsloth_table()});
  require_engine(job, {Engine::torch, Engine::ddp}, "Unsloth", problems);
  if (plan.stage != Stage::sft)
    problems.add({"", "stage", PlanText(plan).word("stage") + " has no file of Unsloth's", "sft"});
  if (!job.model.empty()) writer.set("model", Value::of(job.model));
  write_method(plan, writer, problems);
  writer.set("training.max_seq_length", Value::of(plan.seq));
  writer.set("training.batch_size", Value::of(plan.batch));
  writer.set("training.gradient_accumulation_steps", Value::of(plan.accumulate));
  writer.set("training.packing", Value::of(plan.packing));
  writer.set("training.gradient_checkpointing", Value::of(checkpointing_word(plan.checkpointing)));
  writer.set("training.optim", Value::of(optimizer_word(plan, problems)));
  return writer.take();
}

}  // namespace

Exporter unsloth_exporter() { return {"unsloth", "Unsloth's YAML", Syntax::yaml, false, write}; }

}  // namespace membill::io
