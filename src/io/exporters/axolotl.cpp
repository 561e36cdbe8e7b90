// axolotl's YAML.
#include "base/text.h"
#include "io/exporters/formats.h"
#include "io/importers/formats.h"

namespace membill::io {
namespace {

void write_stage(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  const auto loss = plan.stage_args.find("loss_type");
  const std::string stage = PlanText(plan).word("stage");
  if (plan.stage == Stage::inference) return problems.add({"", "stage", "inference trains nothing", ""});
  if (plan.stage == Stage::reward) writer.set("reward_model", Value::of(true));
  if (plan.stage == Stage::grpo) {
    writer.set("rl", Value::of(stage));
    return write_rollout(plan, "trl.", writer);
  }
  const bool preference = stage == "dpo" || stage == "orpo" || stage == "simpo" || stage == "kto";
  if (!preference) return;
  const bool ipo = loss != plan.stage_args.end() && loss->second == "ipo";
  writer.set("rl", Value::of(ipo ? std::string("ipo") : stage));
  if (plan.beta) writer.set("rl_beta", Value::of(*plan.beta));
  write_preference_losses(plan, "dpo_loss_type", writer);
  if (plan.reference == "precompute") writer.set("precompute_ref_log_probs", Value::of(true));
}

void write_adapter(const TrainingPlan& plan, bool four, KeyWriter& writer) {
  writer.set("adapter", Value::of(four ? "qlora" : "lora"));
  LoraKeys keys{"lora_r", "lora_alpha", "lora_dropout", "lora_target_modules", "lora_modules_to_save", "peft_use_dora"};
  if (target_list(plan, "").is_string()) {
    writer.set("lora_target_linear", Value::of(true));
    keys.targets = {};
  }
  write_lora(plan, keys, writer);
}

void write_method(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  const std::string weights = PlanText(plan).word("weights");
  const bool four = weights == "nf4";
  if (weights == "int8") writer.set("load_in_8bit", Value::of(true));
  if (four) writer.set("load_in_4bit", Value::of(true));
  if (weights == "gptq-int4") writer.set("gptq", Value::of(true));
  if (plan.method == Method::lora || plan.method == Method::dora) return write_adapter(plan, four, writer);
  if (plan.method == Method::freeze) {
    if (plan.freeze.trainable_layers == 0 && !plan.freeze.trainable_modules.empty())
      return writer.set("unfrozen_parameters", text_list(plan.freeze.trainable_modules));
    problems.add({"", "method", "freeze of whole layers is none of axolotl's", "freeze.trainable_modules"});
  } else if (plan.method != Method::full) {
    problems.add({"", "method", PlanText(plan).word("method") + " is none of axolotl's", "lora or full"});
  }
}

void write_precision(const ExportJob& job, KeyWriter& writer) {
  const PlanText plan(job.plan);
  const std::string precision = plan.word("precision"), compute = compute_word(plan);
  if (precision == "pure-bf16" || precision == "pure-fp16") {
    writer.set("bf16", Value::of(false));
    return writer.set(compute == "bf16" ? "bfloat16" : "float16", Value::of(true));
  }
  writer.set("bf16", Value::of(compute == "bf16"));
  writer.set("fp16", Value::of(compute == "fp16"));
}

void write_step(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  writer.set("micro_batch_size", Value::of(plan.batch));
  writer.set("gradient_accumulation_steps", Value::of(plan.accumulate));
  writer.set("sequence_len", Value::of(plan.seq));
  writer.set("sample_packing", Value::of(plan.packing));
  if (!plan.packing && !plan.varied_lengths) writer.set("pad_to_sequence_len", Value::of(true));
  if (plan.padding_free) writer.set("batch_flattening", Value::of(true));
  if (plan.evaluation.batch) {
    writer.set("val_set_size", Value::of(0.01));
    writer.set("eval_batch_size", Value::of(*plan.evaluation.batch));
  }
  if (plan.save.state != "none") writer.set("save_strategy", Value::of("steps"));
  if (plan.save.state != "none" && !plan.save.optimizer) writer.set("save_only_model", Value::of(true));
  writer.set("optimizer", Value::of(trainer_optimizer(plan, problems)));
  if (const std::string text = optimizer_argument_text(plan); !text.empty()) writer.set("optim_args", Value::of(text));
  writer.set("max_grad_norm", Value::of(plan.clip ? 1.0 : 0.0));
  if (plan.compile) writer.set("torch_compile", Value::of(true));
  const bool checkpoints = plan.checkpointing.mode == Checkpointing::full;
  writer.set("gradient_checkpointing", Value::of(checkpoints));
  if (!checkpoints) return;
  writer.set("gradient_checkpointing_kwargs.use_reentrant", Value::of(plan.checkpointing.reentrant));
  if (plan.checkpointing.offload) writer.set("activation_offloading", Value::of(true));
}

// Liger's layers and losses are plugins of axolotl.
void write_code(const ExportJob& job, KeyWriter& writer) {
  const TrainingPlan& plan = job.plan;
  switch (plan.attention) {
    case AttentionKernel::flash: writer.set("flash_attention", Value::of(true)); break;
    case AttentionKernel::eager: writer.set("eager_attention", Value::of(true)); break;
    case AttentionKernel::mem_efficient: writer.set("xformers_attention", Value::of(true)); break;
    default: writer.set("sdp_attention", Value::of(true));
  }
  const bool liger = plan.implementation == Implementation::liger, fused = plan.loss == LossKind::fused;
  if (liger) {
    writer.set("plugins", text_list({"axolotl.integrations.liger.LigerPlugin"}));
    const bool whole = plan.loss == LossKind::native;
    writer.set("liger_rope", Value::of(plan.liger.rope));
    writer.set("liger_rms_norm", Value::of(plan.liger.rms_norm));
    writer.set("liger_glu_activation", Value::of(plan.liger.swiglu));
    writer.set(whole ? "liger_cross_entropy" : "liger_fused_linear_cross_entropy", Value::of(plan.liger.cross_entropy));
  } else if (fused) {
    writer.set("plugins", text_list({"axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin"}));
    writer.set("cut_cross_entropy", Value::of(true));
  }
}

void write_engine(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  require_engine(job, {Engine::torch, Engine::ddp, Engine::deepspeed, Engine::fsdp, Engine::fsdp2}, "axolotl",
                 problems);
  const TrainingPlan& plan = job.plan;
  if (plan.engine == Engine::deepspeed) writer.set("deepspeed", deepspeed_tree(job, false));
  if (plan.engine == Engine::fsdp || plan.engine == Engine::fsdp2) {
    writer.set("fsdp_version", Value::of(plan.engine == Engine::fsdp2 ? 2 : 1));
    writer.set("fsdp_config", fsdp_tree(job, "", true));
  }
  if (plan.parallel.tp > 1) writer.set("tensor_parallel_size", Value::of(plan.parallel.tp));
  if (plan.parallel.cp > 1) writer.set("context_parallel_size", Value::of(plan.parallel.cp));
  if (plan.sharding.fsdp == "hybrid_shard" && plan.sharding.shard_group.value_or(job.count + 1) <= job.count) {
    writer.set("dp_replicate_size", Value::of(job.count / *plan.sharding.shard_group));
    writer.set("dp_shard_size", Value::of(*plan.sharding.shard_group));
  }
  if (const Value* bucket = PlanText(plan).find("sharding.bucket_cap_mb")) writer.set("ddp_bucket_cap_mb", *bucket);
}

Value write(const ExportJob& job, Problems& problems) {
  KeyWriter writer({axolotl_table()});
  if (!job.model.empty()) writer.set("base_model", Value::of(job.model));
  write_stage(job, writer, problems);
  write_method(job, writer, problems);
  write_precision(job, writer);
  write_step(job, writer, problems);
  write_code(job, writer);
  write_engine(job, writer, problems);
  return writer.take();
}

}  // namespace

Exporter axolotl_exporter() { return {"axolotl", "axolotl's YAML", Syntax::yaml, false, write}; }

}  // namespace membill::io
