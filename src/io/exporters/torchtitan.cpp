// torchtitan's TOML.
#include <algorithm>

#include "base/text.h"
#include "io/exporters/formats.h"
#include "io/importers/formats.h"

namespace membill::io {
namespace {

void write_model(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  const auto [name, flavor] = torchtitan_flavor(job.preset);
  if (name.empty()) {
    return problems.add({"", "model",
                         quoted(job.preset.empty() ? job.model : job.preset) + " is no size of torchtitan's",
                         "llama-3.1-8b, qwen3-8b, deepseek-v3"});
  }
  writer.set("model.name", Value::of(name));
  writer.set("model.flavor", Value::of(flavor));
}

// Cards in all but of data parallelism, and their degrees.
std::int64_t write_degrees(const ParallelPlan& parallel, KeyWriter& writer) {
  const std::pair<const char*, std::int64_t> degrees[] = {{"parallelism.tensor_parallel_degree", parallel.tp},
                                                          {"parallelism.pipeline_parallel_degree", parallel.pp},
                                                          {"parallelism.context_parallel_degree", parallel.cp}};
  std::int64_t cards = 1;
  for (const auto& [key, degree] : degrees) {
    if (degree > 1) writer.set(key, Value::of(degree));
    cards = checked_mul(cards, std::max<std::int64_t>(1, degree));
  }
  if (parallel.ep > 1) writer.set("parallelism.expert_parallel_degree", Value::of(parallel.ep));
  return cards;
}

void write_engine(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  require_engine(job, {Engine::torch, Engine::ddp, Engine::fsdp2}, "torchtitan", problems);
  const std::int64_t data = std::max<std::int64_t>(1, job.count / write_degrees(plan.parallel, writer));
  const bool shards = plan.engine == Engine::fsdp2;
  const std::int64_t group = std::clamp<std::int64_t>(plan.sharding.shard_group.value_or(data), 1, data);
  const std::int64_t sharded = !shards ? 1 : plan.sharding.fsdp == "hybrid_shard" ? group : data;
  writer.set("parallelism.data_parallel_replicate_degree", Value::of(data / sharded));
  writer.set("parallelism.data_parallel_shard_degree", Value::of(sharded));
  if (plan.sharding.fsdp == "shard_grad_op") writer.set("parallelism.fsdp_reshard_after_forward", Value::of("never"));
  writer.set("training.enable_cpu_offload", Value::of(plan.sharding.offload != "none"));
  writer.set("training.global_batch_size", Value::of(checked_mul(checked_mul(plan.batch, plan.accumulate), data)));
}

void write_precision(const TrainingPlan& plan, KeyWriter& writer, Problems& problems) {
  const std::string weights = PlanText(plan).word("weights");
  if (weights != "fp32" && weights != "bf16")
    problems.add({"", "weights", weights + " is none of torchtitan's", "fp32 or bf16"});
  writer.set("training.dtype", Value::of(weights == "bf16" ? "bfloat16" : "float32"));
  const bool mixed = plan.precision == Precision::amp_bf16;
  writer.set("training.mixed_precision_param", Value::of(mixed ? "bfloat16" : "float32"));
  if (const std::string reduced = PlanText(plan).word("sharding.reduce_dtype"); reduced == "bf16")
    writer.set("training.mixed_precision_reduce", Value::of("bfloat16"));
}

void write_checkpointing(const CheckpointPlan& plan, KeyWriter& writer) {
  const bool none = plan.mode == Checkpointing::none;
  const bool ops = plan.mode == Checkpointing::selective, some = plan.mode == Checkpointing::full && plan.every > 1;
  writer.set("activation_checkpoint.mode", Value::of(none ? "none" : ops || some ? "selective" : "full"));
  if (ops || some)
    writer.set("activation_checkpoint.selective_ac_option", Value::of(ops ? "op" : std::to_string(plan.every)));
}

Value write(const ExportJob& job, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  KeyWriter writer({torchtitan_table()});
  if (plan.stage != Stage::pretrain && plan.stage != Stage::sft)
    problems.add({"", "stage", PlanText(plan).word("stage") + " has no file of torchtitan's", "pretrain"});
  if (plan.method != Method::full)
    problems.add({"", "method", PlanText(plan).word("method") + " is none of torchtitan's", "full"});
  if (plan.optimizer != "adamw" && plan.optimizer != "adam")
    problems.add({"", "optimizer", quoted(plan.optimizer) + " is none of torchtitan's", "adamw or adam"});
  write_model(job, writer, problems);
  writer.set("optimizer.name", Value::of(plan.optimizer == "adam" ? "Adam" : "AdamW"));
  const bool fused = plan.optimizer_impl == OptimizerImpl::fused, loop = plan.optimizer_impl == OptimizerImpl::loop;
  writer.set("optimizer.implementation", Value::of(fused ? "fused" : loop ? "for-loop" : "foreach"));
  if (plan.optimizer_in_backward) writer.set("optimizer.early_step_in_backward", Value::of(true));
  writer.set("training.local_batch_size", Value::of(plan.batch));
  writer.set("training.seq_len", Value::of(plan.seq));
  write_engine(job, writer, problems);
  write_precision(plan, writer, problems);
  write_checkpointing(plan.checkpointing, writer);
  writer.set("compile.enable", Value::of(plan.compile));
  if (plan.save.state != "none") writer.set("checkpoint.enable", Value::of(true));
  return writer.take();
}

}  // namespace

Exporter torchtitan_exporter() { return {"torchtitan", "torchtitan's TOML", Syntax::toml, false, write}; }

}  // namespace membill::io
