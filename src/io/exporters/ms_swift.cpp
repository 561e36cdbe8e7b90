// ms-swift's YAML (swift sft job.yaml).
#include "io/exporters/formats.h"
#include "io/importers/formats.h"
#include "io/importers/training_arguments.h"

namespace membill::io {
namespace {

void write_stage(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  const std::string stage = PlanText(job.plan).word("stage");
  if (stage == "inference" || stage == "ppo" || stage == "grpo")
    return problems.add({"", "stage", stage + " has no file of ms-swift's", ""});
  if (stage == "sft" || stage == "pretrain") return;
  if (stage == "classification") {
    writer.set("task_type", Value::of("seq_cls"));
    if (const auto labels = job.plan.stage_args.find("num_labels"); labels != job.plan.stage_args.end())
      writer.set("num_labels", flag_value(labels->second));
    return;
  }
  writer.set("rlhf_type", Value::of(stage == "reward" ? "rm" : stage));
  if (job.plan.beta) writer.set("beta", Value::of(*job.plan.beta));
  write_preference_losses(job.plan, "loss_type", writer);
}

void write_method(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  const std::string method = PlanText(plan).word("method");
  const bool adapts =
      method == "lora" || method == "dora" || method == "adalora" || method == "vera" || method == "ia3";
  if (method != "full" && !adapts)
    return problems.add({"", "method", method + " is none of ms-swift's", "lora, dora, adalora, vera, ia3 or full"});
  writer.set("tuner_type", Value::of(method == "dora" ? "lora" : method));
  if (!adapts) return;
  constexpr LoraKeys kKeys{"lora_rank", "lora_alpha", "lora_dropout", "target_modules", "modules_to_save", "use_dora"};
  write_lora(plan, kKeys, writer);
}

// Autocast follows the dtype of the weights; fp16 weights that train are cast up.
void write_base(const ExportJob& job, KeyWriter& writer) {
  const PlanText plan(job.plan);
  const std::string weights = plan.word("weights"), compute = compute_word(plan);
  const bool cast_up = job.plan.method == Method::full && weights == "fp32" && compute == "fp16";
  const bool narrow = cast_up || weights == "fp16" || (weights != "fp32" && compute == "fp16");
  writer.set("torch_dtype", Value::of(narrow ? "float16" : weights == "fp32" ? "float32" : "bfloat16"));
  if (weights == "nf4" || weights == "fp4") {
    writer.set("quant_method", Value::of("bnb"));
    writer.set("quant_bits", Value::of(4));
    writer.set("bnb_4bit_quant_type", Value::of(weights));
    writer.set("bnb_4bit_use_double_quant", Value::of(job.plan.double_quant));
  } else if (weights == "int8" || weights == "hqq-int4") {
    writer.set("quant_method", Value::of(weights == "int8" ? "bnb" : "hqq"));
    writer.set("quant_bits", Value::of(weights == "int8" ? 8 : 4));
  }
}

void write_code(const ExportJob& job, KeyWriter& writer) {
  const TrainingPlan& plan = job.plan;
  const bool flash = plan.attention == AttentionKernel::flash, eager = plan.attention == AttentionKernel::eager;
  writer.set("attn_impl", Value::of(flash ? "flash_attn" : eager ? "eager" : "sdpa"));
  write_liger(plan, writer);
  writer.set("max_length", Value::of(plan.seq));
  writer.set("packing", Value::of(plan.packing));
  if (plan.padding_free && !plan.packing) writer.set("padding_free", Value::of(true));
  if (plan.parallel.ulysses > 1) writer.set("sequence_parallel_size", Value::of(plan.parallel.ulysses));
  if (plan.evaluation.batch) writer.set("split_dataset_ratio", Value::of(0.01, "0.01"));
}

Value write(const ExportJob& job, Problems& problems) {
  KeyWriter writer({ms_swift_table(), training_arguments_table()});
  if (!job.model.empty()) writer.set("model", Value::of(job.model));
  write_stage(job, writer, problems);
  write_method(job, writer, problems);
  write_base(job, writer);
  write_code(job, writer);
  write_training_arguments(job, writer, problems);
  write_checkpointing_arguments(job, writer);
  write_sharding_arguments(job, writer, problems);
  return writer.take();
}

}  // namespace

Exporter ms_swift_exporter() { return {"ms-swift", "ms-swift's YAML", Syntax::yaml, false, write}; }

}  // namespace membill::io
