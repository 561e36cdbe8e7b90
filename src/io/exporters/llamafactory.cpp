// LLaMA-Factory's YAML.
#include "base/text.h"
#include "io/exporters/formats.h"
#include "io/exporters/llamafactory_megatron.h"
#include "io/importers/formats.h"
#include "io/importers/llamafactory_megatron.h"
#include "io/importers/megatron_step.h"
#include "io/importers/training_arguments.h"

namespace membill::io {
namespace {

void write_stage(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  const PlanText plan(job.plan);
  const std::string stage = plan.word("stage");
  if (stage == "inference") return problems.add({"", "stage", "inference trains nothing", ""});
  const bool preference = stage == "dpo" || stage == "orpo" || stage == "simpo";
  writer.set("stage", Value::of(stage == "pretrain" ? "pt" : stage == "reward" ? "rm" : preference ? "dpo" : stage));
  if (!preference) return;
  const auto loss = job.plan.stage_args.find("loss_type");
  writer.set("pref_loss", Value::of(stage != "dpo"                      ? stage
                                    : loss == job.plan.stage_args.end() ? std::string("sigmoid")
                                                                        : loss->second));
  if (job.plan.beta) writer.set("pref_beta", Value::of(*job.plan.beta));
}

constexpr LoraKeys kLoraKeys{"lora_rank",         "lora_alpha", "lora_dropout", "lora_target",
                             "additional_target", "use_dora",   "all",          true};

void write_method(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  if (plan.method == Method::full) {
    writer.set("finetuning_type", Value::of("full"));
  } else if (plan.method == Method::freeze) {
    writer.set("finetuning_type", Value::of("freeze"));
    writer.set("freeze_trainable_layers", Value::of(plan.freeze.trainable_layers));
    if (!plan.freeze.trainable_modules.empty())
      writer.set("freeze_extra_modules", Value::of(join(plan.freeze.trainable_modules, ",")));
  } else if (plan.method == Method::lora || plan.method == Method::dora) {
    writer.set("finetuning_type", Value::of("lora"));
    write_lora(plan, kLoraKeys, writer);
  } else if (plan.method == Method::oft) {
    constexpr std::int64_t kDefaultBlock = 32;
    const std::int64_t block = plan.adapter.block_size.value_or(kDefaultBlock);
    writer.set("finetuning_type", Value::of("oft"));
    if (block == 0) writer.set("oft_rank", Value::of(plan.adapter.rank));
    writer.set("oft_block_size", Value::of(block));
    write_lora(plan, {"", "", "", "oft_target", "additional_target", "", "all", true}, writer);
  } else {
    problems.add(
        {"", "method", PlanText(plan).word("method") + " is none of LLaMA-Factory's", "lora, oft, freeze or full"});
  }
}

void write_base(const ExportJob& job, KeyWriter& writer) {
  const std::string weights = PlanText(job.plan).word("weights");
  if (weights == "nf4" || weights == "fp4") {
    writer.set("quantization_bit", Value::of(4));
    writer.set("quantization_method", Value::of("bnb"));
    writer.set("quantization_type", Value::of(weights));
    writer.set("double_quantization", Value::of(job.plan.double_quant));
  } else if (weights == "int8" || weights == "hqq-int4") {
    writer.set("quantization_bit", Value::of(weights == "int8" ? 8 : 4));
    writer.set("quantization_method", Value::of(weights == "int8" ? "bnb" : "hqq"));
  }
  if (job.plan.precision == Precision::pure_bf16) writer.set("pure_bf16", Value::of(true));
}

void write_special_optimizer(const ExportJob& job, KeyWriter& writer) {
  const std::string& name = job.plan.optimizer;
  const auto& arguments = job.plan.optimizer_args;
  for (const std::string method : {"galore", "apollo"}) {
    if (name != method + "-adamw") continue;
    writer.set("use_" + method, Value::of(true));
    const auto rank = arguments.find("rank"), gap = arguments.find("update_proj_gap");
    if (rank != arguments.end()) writer.set(method + "_rank", flag_value(rank->second));
    if (gap != arguments.end()) writer.set(method + "_update_interval", flag_value(gap->second));
    if (job.plan.optimizer_in_backward) writer.set(method + "_layerwise", Value::of(true));
  }
  if (name == "badam") writer.set("use_badam", Value::of(true));
  if (name == "adam-mini") writer.set("use_adam_mini", Value::of(true));
  if (name == "muon") writer.set("use_muon", Value::of(true));
}

// An optimizer of LLaMA-Factory's own takes the place of the Trainer's.
bool is_special(const std::string& optimizer) {
  for (const char* name : {"galore-adamw", "apollo-adamw", "badam", "adam-mini", "muon"}) {
    if (optimizer == name) return true;
  }
  return false;
}

ExportJob with_usual_optimizer(ExportJob job) {
  job.plan.optimizer = "adamw";
  job.plan.optimizer_args.clear();
  return job;
}

void write_code(const ExportJob& job, KeyWriter& writer) {
  const TrainingPlan& plan = job.plan;
  const bool flash = plan.attention == AttentionKernel::flash;
  writer.set("flash_attn", Value::of(flash ? "fa2" : plan.attention == AttentionKernel::eager ? "disabled" : "sdpa"));
  if (plan.implementation == Implementation::liger) writer.set("enable_liger_kernel", Value::of(true));
  if (plan.implementation == Implementation::unsloth) writer.set("use_unsloth", Value::of(true));
  const bool checkpoints = plan.checkpointing.mode == Checkpointing::full;
  writer.set("disable_gradient_checkpointing", Value::of(!checkpoints));
  if (checkpoints) writer.set("use_reentrant_gc", Value::of(plan.checkpointing.reentrant));
  if (plan.checkpointing.offload) writer.set("use_unsloth_gc", Value::of(true));
  if (plan.loss == LossKind::upcast) writer.set("upcast_lmhead_output", Value::of(true));
}

Value write_on_megatron(const ExportJob& job, Problems& problems) {
  KeyWriter writer(
      {llamafactory_megatron_table(), llamafactory_table(), megatron_step_table(), training_arguments_table()});
  if (!job.model.empty()) writer.set("model_name_or_path", Value::of(job.model));
  write_stage(job, writer, problems);
  write_method(job, writer, problems);
  writer.set("cutoff_len", Value::of(job.plan.seq));
  if (job.plan.packing) writer.set("packing", Value::of(true));
  write_llamafactory_megatron(job, writer);
  return writer.take();
}

Value write(const ExportJob& job, Problems& problems) {
  if (job.plan.engine == Engine::megatron) return write_on_megatron(job, problems);
  KeyWriter writer({llamafactory_table(), training_arguments_table()});
  if (!job.model.empty()) writer.set("model_name_or_path", Value::of(job.model));
  write_stage(job, writer, problems);
  write_method(job, writer, problems);
  write_base(job, writer);
  write_code(job, writer);
  writer.set("cutoff_len", Value::of(job.plan.seq));
  writer.set("packing", Value::of(job.plan.packing));
  const bool special = is_special(job.plan.optimizer);
  write_training_arguments(special ? with_usual_optimizer(job) : job, writer, problems);
  if (special) write_special_optimizer(job, writer);
  write_sharding_arguments(job, writer, problems);
  return writer.take();
}

}  // namespace

Exporter llamafactory_exporter() { return {"llamafactory", "LLaMA-Factory's YAML", Syntax::yaml, false, write}; }

}  // namespace membill::io
