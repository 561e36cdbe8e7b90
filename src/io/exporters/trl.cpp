// TRL's YAML.
#include "io/exporters/formats.h"
#include "io/importers/formats.h"
#include "io/importers/training_arguments.h"

namespace membill::io {
namespace {

const char* dtype_name(const std::string& weights) {
  return weights == "fp32" ? "float32" : weights == "fp16" ? "float16" : "bfloat16";
}

void write_stage(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  if (plan.stage == Stage::inference) return problems.add({"", "stage", "inference trains nothing", ""});
  if (plan.stage == Stage::ppo) return problems.add({"", "stage", "ppo has no file of TRL's", "grpo"});
  if (plan.stage == Stage::grpo) {
    writer.set("reward_funcs", text_list({"reward"}));
    return write_rollout(plan, "", writer);
  }
  if (plan.prompt) writer.set("max_prompt_length", Value::of(*plan.prompt));
  if (plan.beta) writer.set("beta", Value::of(*plan.beta));
  if (const auto loss = plan.stage_args.find("loss_type"); loss != plan.stage_args.end())
    writer.set("loss_type", Value::of(loss->second));
  if (plan.reference == "precompute") writer.set("precompute_ref_log_probs", Value::of(true));
}

void write_method(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  if (plan.method == Method::full) return;
  if (plan.method != Method::lora && plan.method != Method::dora)
    return problems.add({"", "method", PlanText(plan).word("method") + " is none of TRL's flags", "lora or full"});
  writer.set("use_peft", Value::of(true));
  constexpr LoraKeys kKeys{"lora_r",  "lora_alpha", "lora_dropout", "lora_target_modules", "lora_modules_to_save",
                           "use_dora"};
  write_lora(plan, kKeys, writer);
}

void write_base(const ExportJob& job, KeyWriter& writer) {
  const std::string weights = PlanText(job.plan).word("weights");
  writer.set("dtype", Value::of(dtype_name(weights)));
  if (weights == "nf4" || weights == "fp4") {
    writer.set("load_in_4bit", Value::of(true));
    writer.set("bnb_4bit_quant_type", Value::of(weights));
    writer.set("use_bnb_nested_quant", Value::of(job.plan.double_quant));
  } else if (weights == "int8") {
    writer.set("load_in_8bit", Value::of(true));
  }
}

void write_code(const ExportJob& job, KeyWriter& writer) {
  const TrainingPlan& plan = job.plan;
  const bool flash = plan.attention == AttentionKernel::flash, eager = plan.attention == AttentionKernel::eager;
  writer.set("attn_implementation", Value::of(flash ? "flash_attention_2" : eager ? "eager" : "sdpa"));
  write_liger(plan, writer);
  if (plan.checkpointing.offload) writer.set("activation_offloading", Value::of(true));
  if (plan.stage == Stage::grpo) return;
  writer.set("max_length", Value::of(plan.seq));
  writer.set("packing", Value::of(plan.packing));
  if (plan.packing) writer.set("packing_strategy", Value::of(plan.padding_free ? "bfd" : "wrapped"));
  if (!plan.packing && plan.padding_free) writer.set("padding_free", Value::of(true));
  if (plan.stage == Stage::sft && plan.loss == LossKind::upcast) writer.set("loss_type", Value::of("nll"));
  if (plan.stage == Stage::sft && plan.loss == LossKind::fused) writer.set("loss_type", Value::of("chunked_nll"));
}

Value write(const ExportJob& job, Problems& problems) {
  KeyWriter writer({trl_table(), training_arguments_table()});
  if (!job.model.empty()) writer.set("model_name_or_path", Value::of(job.model));
  write_base(job, writer);
  write_stage(job, writer, problems);
  write_method(job, writer, problems);
  write_code(job, writer);
  write_training_arguments(job, writer, problems);
  write_checkpointing_arguments(job, writer);
  write_sharding_arguments(job, writer, problems);
  return writer.take();
}

}  // namespace

Exporter trl_exporter() { return {"trl", "TRL's YAML", Syntax::yaml, false, write}; }

}  // namespace membill::io
