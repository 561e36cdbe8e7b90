// torchtune's YAML.
#include <algorithm>

#include "base/text.h"
#include "io/exporters/formats.h"
#include "io/importers/formats.h"
#include "io/importers/torchtune_builders.h"

namespace membill::io {
namespace {

void write_model(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  const std::string builder = torchtune_builder(job.preset);
  if (builder.empty()) {
    return problems.add({"", "model",
                         quoted(job.preset.empty() ? job.model : job.preset) + " has no builder in torchtune",
                         "llama-2-7b, llama-3.1-8b, qwen2.5-7b"});
  }
  const std::string family = builder.substr(0, builder.find('.') + 1), name = builder.substr(family.size());
  const bool lora = plan.method == Method::lora || plan.method == Method::dora;
  if (!lora && plan.method != Method::full)
    problems.add({"", "method", PlanText(plan).word("method") + " is none of torchtune's", "lora or full"});
  const char* prefix = !lora ? "" : plan.weights == WeightFormat::nf4 ? "qlora_" : "lora_";
  writer.set("model._component_", Value::of("torchtune.models." + family + prefix + name));
  if (!lora) return;
  std::vector<std::string> attention;
  const auto has = [&](const char* module) {
    return std::find(plan.adapter.targets.begin(), plan.adapter.targets.end(), module) != plan.adapter.targets.end() ||
           (plan.adapter.targets.size() == 1 && plan.adapter.targets[0] == "all-linear");
  };
  for (const char* module : {"q_proj", "k_proj", "v_proj"}) {
    if (has(module)) attention.emplace_back(module);
  }
  if (has("o_proj")) attention.emplace_back("output_proj");
  writer.set("model.lora_attn_modules", text_list(attention));
  writer.set("model.apply_lora_to_mlp", Value::of(has("gate_proj") && has("up_proj") && has("down_proj")));
  writer.set("model.apply_lora_to_output", Value::of(std::find(plan.adapter.targets.begin(), plan.adapter.targets.end(),
                                                               "lm_head") != plan.adapter.targets.end()));
  write_lora(plan, {"model.lora_rank", "model.lora_alpha", "model.lora_dropout", "", "", "model.use_dora"}, writer);
}

std::string optimizer_component(const TrainingPlan& plan, Problems& problems) {
  static constexpr std::pair<std::string_view, const char*> kComponents[] = {
      {"adamw", "torch.optim.AdamW"},
      {"adam", "torch.optim.Adam"},
      {"sgd", "torch.optim.SGD"},
      {"adamw-8bit", "bitsandbytes.optim.AdamW8bit"},
      {"paged-adamw-8bit", "bitsandbytes.optim.PagedAdamW8bit"},
      {"paged-adamw-32bit", "bitsandbytes.optim.PagedAdamW"},
      {"adamw-torch-8bit", "torchao.optim.AdamW8bit"},
      {"adamw-torch-4bit", "torchao.optim.AdamW4bit"},
      {"cpu-adam", "torchao.prototype.low_bit_optim.CPUOffloadOptimizer"}};
  for (const auto& [name, component] : kComponents) {
    if (plan.optimizer == name) return component;
  }
  problems.add({"", "optimizer", quoted(plan.optimizer) + " has no component in torchtune's recipes", "adamw"});
  return {};
}

void write_teacher(const TrainingPlan& plan, KeyWriter& writer, Problems& problems) {
  if (plan.stage != Stage::distill || !plan.teacher) return;
  const std::string builder = torchtune_builder(*plan.teacher);
  if (builder.empty())
    return problems.add(
        {"", "teacher", quoted(*plan.teacher) + " has no builder in torchtune", "qwen2-1.5b, llama-3.1-8b"});
  const auto way = plan.stage_args.find("kd_loss");
  std::string loss = way == plan.stage_args.end() ? "forward" : way->second;
  if (!loss.empty()) loss.front() = static_cast<char>(loss.front() - 'a' + 'A');
  writer.set("teacher_model._component_", Value::of("torchtune.models." + builder));
  writer.set("kd_loss._component_", Value::of("torchtune.modules.loss." + loss + "KL" +
                                              (plan.loss == LossKind::native ? "Loss" : "WithChunkedOutputLoss")));
}

void write_step(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  writer.set("batch_size", Value::of(plan.batch));
  writer.set("gradient_accumulation_steps", Value::of(plan.accumulate));
  writer.set("tokenizer.max_seq_len", Value::of(plan.seq));
  writer.set("dataset.packed", Value::of(plan.packing));
  writer.set("enable_activation_checkpointing", Value::of(plan.checkpointing.mode == Checkpointing::full));
  writer.set("enable_activation_offloading", Value::of(plan.checkpointing.offload));
  if (plan.checkpointing.every > 1) {
    writer.set("ac_mode", Value::of("selective"));
    writer.set("ac_option", Value::of(plan.checkpointing.every));
  }
  writer.set("optimizer._component_", Value::of(optimizer_component(plan, problems)));
  if (plan.optimizer_impl == OptimizerImpl::fused) writer.set("optimizer.fused", Value::of(true));
  writer.set("optimizer_in_bwd", Value::of(plan.optimizer_in_backward));
  if (plan.clip) writer.set("clip_grad_norm", Value::of(1.0));
  writer.set("compile", Value::of(plan.compile));
  if (plan.loss == LossKind::native) writer.set("loss._component_", Value::of("torch.nn.CrossEntropyLoss"));
  if (plan.stage == Stage::dpo) writer.set("loss._component_", Value::of("torchtune.rlhf.loss.DPOLoss"));
  if (!plan.evaluation.batch) return;
  writer.set("run_val_every_n_steps", Value::of(100));
  writer.set("batch_size_val", Value::of(*plan.evaluation.batch));
}

void write_engine(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  require_engine(job, {Engine::torch, Engine::fsdp2}, "torchtune", problems);
  const TrainingPlan& plan = job.plan;
  if (plan.engine != Engine::fsdp2) return;
  writer.set("fsdp_reshard_after_forward", Value::of(plan.sharding.fsdp != "shard_grad_op"));
  writer.set("fsdp_cpu_offload", Value::of(plan.sharding.offload != "none"));
  if (PlanText(plan).word("sharding.wrap") == "block+embedding")
    writer.set("custom_sharded_layers", text_list({"tok_embeddings", "output"}));
  if (plan.parallel.tp > 1) writer.set("tensor_parallel_dim", Value::of(plan.parallel.tp));
  if (plan.parallel.cp > 1) writer.set("context_parallel_dim", Value::of(plan.parallel.cp));
  if (plan.sharding.fsdp == "hybrid_shard" && plan.sharding.shard_group.value_or(job.count + 1) <= job.count)
    writer.set("data_parallel_replicate_dim", Value::of(job.count / *plan.sharding.shard_group));
}

Value write(const ExportJob& job, Problems& problems) {
  KeyWriter writer({torchtune_table()});
  const std::string compute = compute_word(PlanText(job.plan));
  write_model(job, writer, problems);
  writer.set("dtype", Value::of(compute.empty() ? std::string("fp32") : compute));
  write_step(job, writer, problems);
  write_teacher(job.plan, writer, problems);
  write_engine(job, writer, problems);
  return writer.take();
}

}  // namespace

Exporter torchtune_exporter() { return {"torchtune", "torchtune's YAML", Syntax::yaml, false, write}; }

}  // namespace membill::io
