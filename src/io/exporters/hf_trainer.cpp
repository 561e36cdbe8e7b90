// Arguments of scripts on Hugging Face's Trainer, as JSON.
#include "io/exporters/formats.h"
#include "io/importers/formats.h"
#include "io/importers/training_arguments.h"

namespace membill::io {
namespace {

void write_method(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  if (plan.method == Method::full) return;
  if (plan.method != Method::lora && plan.method != Method::dora)
    return problems.add({"", "method", PlanText(plan).word("method") + " is no flag of such scripts", "lora or full"});
  writer.set("use_lora", Value::of(true));
  constexpr LoraKeys kKeys{"lora_r",          "lora_alpha", "lora_dropout", "lora_target_modules",
                           "modules_to_save", "use_dora"};
  write_lora(plan, kKeys, writer);
}

void write_base(const ExportJob& job, KeyWriter& writer) {
  const std::string weights = PlanText(job.plan).word("weights");
  if (weights == "nf4" || weights == "fp4") {
    writer.set("bits", Value::of(4));
    writer.set("quant_type", Value::of(weights));
    writer.set("double_quant", Value::of(job.plan.double_quant));
  } else if (weights == "int8") {
    writer.set("bits", Value::of(8));
  } else {
    writer.set("torch_dtype", Value::of(weights == "fp32" ? "float32" : weights == "fp16" ? "float16" : "bfloat16"));
  }
}

void write_stage(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  const std::string stage = PlanText(job.plan).word("stage");
  if (stage != "sft" && stage != "pretrain" && stage != "dpo")
    return problems.add({"", "stage", stage + " is no flag of such scripts", "sft, pretrain or dpo"});
  if (stage != "sft") writer.set("task_type", Value::of(stage));
  if (stage == "dpo" && job.plan.beta) writer.set("beta", Value::of(*job.plan.beta));
  if (stage == "dpo" && job.plan.prompt) writer.set("max_prompt_length", Value::of(*job.plan.prompt));
}

Value write(const ExportJob& job, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  KeyWriter writer({hf_trainer_table(), training_arguments_table()});
  if (!job.model.empty()) writer.set("model_name_or_path", Value::of(job.model));
  write_stage(job, writer, problems);
  write_method(job, writer, problems);
  write_base(job, writer);
  const bool flash = plan.attention == AttentionKernel::flash, eager = plan.attention == AttentionKernel::eager;
  writer.set("attn_implementation", Value::of(flash ? "flash_attention_2" : eager ? "eager" : "sdpa"));
  write_liger(plan, writer);
  writer.set("max_seq_length", Value::of(plan.seq));
  writer.set("packing", Value::of(plan.packing));
  write_training_arguments(job, writer, problems);
  write_checkpointing_arguments(job, writer);
  write_sharding_arguments(job, writer, problems);
  return writer.take();
}

}  // namespace

Exporter hf_trainer_exporter() {
  return {"hf-trainer", "arguments of scripts on Hugging Face's Trainer, as JSON", Syntax::json, false, write};
}

}  // namespace membill::io
