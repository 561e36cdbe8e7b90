// verl's YAML of supervised fine-tuning (torchrun -m verl.trainer.fsdp_sft_trainer).
#include <algorithm>

#include "io/exporters/formats.h"
#include "io/importers/formats.h"

namespace membill::io {
namespace {

void write_method(const TrainingPlan& plan, KeyWriter& writer, Problems& problems) {
  if (plan.method != Method::full && plan.method != Method::lora)
    problems.add({"", "method", PlanText(plan).word("method") + " is none of verl's", "lora or full"});
  if (plan.method != Method::lora) return;
  write_lora(plan, {"model.lora_rank", "model.lora_alpha", "", "model.target_modules", "", ""}, writer);
}

void write_engine(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  require_engine(job, {Engine::fsdp, Engine::fsdp2}, "verl", problems);
  writer.set("model.strategy", Value::of(plan.engine == Engine::fsdp ? "fsdp" : "fsdp2"));
  writer.set("model.fsdp_config.model_dtype", Value::of(PlanText(plan).word("weights")));
  const bool offloads = plan.sharding.offload != "none";
  writer.set("model.fsdp_config.cpu_offload", Value::of(offloads));
  writer.set("model.fsdp_config.offload_params", Value::of(offloads));
  if (plan.parallel.ulysses > 1) writer.set("ulysses_sequence_parallel_size", Value::of(plan.parallel.ulysses));
  const std::int64_t nodes = std::max<std::int64_t>(1, job.nodes);
  writer.set("trainer.nnodes", Value::of(nodes));
  writer.set("trainer.n_gpus_per_node", Value::of(job.count / nodes));
}

Value write(const ExportJob& job, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  KeyWriter writer({verl_table()});
  if (plan.stage != Stage::sft)
    problems.add({"", "stage", PlanText(plan).word("stage") + " has no file of verl's that is read", "sft"});
  if (plan.optimizer != "adamw") problems.add({"", "optimizer", plan.optimizer + " is not written for verl", "adamw"});
  if (!job.model.empty()) writer.set("model.partial_pretrain", Value::of(job.model));
  writer.set("data.micro_batch_size_per_gpu", Value::of(plan.batch));
  writer.set("data.train_batch_size", Value::of(checked_mul(checked_mul(plan.batch, plan.accumulate), job.count)));
  writer.set("data.max_length", Value::of(plan.seq));
  writer.set("model.enable_gradient_checkpointing", Value::of(plan.checkpointing.mode == Checkpointing::full));
  writer.set("model.use_liger", Value::of(plan.implementation == Implementation::liger));
  if (!plan.clip) writer.set("optim.clip_grad", Value::of(0.0, "0.0"));
  write_method(plan, writer, problems);
  write_engine(job, writer, problems);
  writer.set("use_remove_padding", Value::of(plan.padding_free));
  return writer.take();
}

}  // namespace

Exporter verl_exporter() { return {"verl", "verl's YAML of supervised fine-tuning", Syntax::yaml, false, write}; }

}  // namespace membill::io
