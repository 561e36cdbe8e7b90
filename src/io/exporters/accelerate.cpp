// accelerate's YAML.
#include "io/exporters/formats.h"
#include "io/importers/formats.h"

namespace membill::io {
namespace {

const char* distributed_type(Engine engine) {
  switch (engine) {
    case Engine::torch: return "NO";
    case Engine::ddp: return "MULTI_GPU";
    case Engine::deepspeed: return "DEEPSPEED";
    case Engine::fsdp:
    case Engine::fsdp2: return "FSDP";
    case Engine::megatron: return "MEGATRON_LM";
  }
  return "NO";
}

void write_deepspeed(const ExportJob& job, const PlanText& plan, KeyWriter& writer) {
  const std::string& offload = job.plan.sharding.offload;
  const bool states = offload != "none" && offload != "param", weights = offload != "none" && offload != "optimizer";
  writer.set("deepspeed_config.zero_stage", Value::of(job.plan.sharding.zero));
  writer.set("deepspeed_config.offload_optimizer_device",
             Value::of(states ? offload_device(plan, "offload_optimizer") : "none"));
  writer.set("deepspeed_config.offload_param_device",
             Value::of(weights && job.plan.sharding.zero == 3 ? offload_device(plan, "offload_param") : "none"));
  writer.set("deepspeed_config.gradient_accumulation_steps", Value::of(job.plan.accumulate));
  writer.set("deepspeed_config.gradient_clipping", Value::of(job.plan.clip ? 1.0 : 0.0));
  writer.set("deepspeed_config.zero3_init_flag", Value::of(job.plan.sharding.zero == 3));
}

void write_megatron(const ExportJob& job, KeyWriter& writer) {
  const std::string prefix = "megatron_lm_config.megatron_lm_";
  writer.set(prefix + "tp_degree", Value::of(job.plan.parallel.tp));
  writer.set(prefix + "pp_degree", Value::of(job.plan.parallel.pp));
  writer.set(prefix + "sequence_parallelism", Value::of(job.plan.parallel.sp));
  writer.set(prefix + "recompute_activations", Value::of(job.plan.checkpointing.mode == Checkpointing::selective));
  writer.set(prefix + "use_distributed_optimizer", Value::of(job.plan.sharding.zero == 1));
}

void write_parallelism(const ExportJob& job, KeyWriter& writer) {
  const ParallelPlan& parallel = job.plan.parallel;
  const std::string prefix = "parallelism_config.parallelism_config_";
  const std::pair<const char*, std::int64_t> degrees[] = {
      {"tp_size", parallel.tp}, {"cp_size", parallel.cp}, {"sp_size", parallel.ulysses}};
  for (const auto& [key, degree] : degrees) {
    if (degree > 1) writer.set(prefix + key, Value::of(degree));
  }
  const std::int64_t group = job.plan.sharding.shard_group.value_or(0);
  if (job.plan.sharding.fsdp != "hybrid_shard" || group < 1 || group > job.count) return;
  writer.set(prefix + "dp_replicate_size", Value::of(job.count / group));
  writer.set(prefix + "dp_shard_size", Value::of(group));
}

Value write(const ExportJob& job, Problems&) {
  const PlanText plan(job.plan);
  KeyWriter writer({accelerate_table()});
  const std::string compute = compute_word(plan);
  const bool autocast = !plan.word("precision").starts_with("pure");
  writer.set("compute_environment", Value::of("LOCAL_MACHINE"));
  writer.set("distributed_type", Value::of(distributed_type(job.plan.engine)));
  writer.set("mixed_precision", Value::of(compute.empty() || !autocast ? std::string("no") : compute));
  writer.set("num_machines", Value::of(job.nodes));
  writer.set("num_processes", Value::of(job.count));
  writer.set("machine_rank", Value::of(0));
  writer.set("main_training_function", Value::of("main"));
  if (job.plan.engine == Engine::deepspeed) write_deepspeed(job, PlanText(job.plan), writer);
  if (job.plan.engine == Engine::fsdp || job.plan.engine == Engine::fsdp2)
    writer.set("fsdp_config", fsdp_tree(job, "fsdp_", true));
  if (job.plan.engine == Engine::megatron) return write_megatron(job, writer), writer.take();
  write_parallelism(job, writer);
  if (job.plan.engine != Engine::deepspeed && job.plan.accumulate > 1)
    writer.set("gradient_accumulation_steps", Value::of(job.plan.accumulate));
  if (job.plan.compile) writer.set("dynamo_config.dynamo_backend", Value::of("INDUCTOR"));
  return writer.take();
}

}  // namespace

Exporter accelerate_exporter() {
  return {"accelerate", "accelerate's YAML, with its DeepSpeed or FSDP part", Syntax::yaml, true, write};
}

}  // namespace membill::io
