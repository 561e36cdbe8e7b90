// DeepSpeed's JSON.
#include "io/exporters/formats.h"
#include "io/importers/formats.h"

namespace membill::io {
namespace {

constexpr std::string_view kSizes[] = {"reduce_bucket_size",
                                       "allgather_bucket_size",
                                       "overlap_comm",
                                       "contiguous_gradients",
                                       "reduce_scatter",
                                       "sub_group_size",
                                       "stage3_prefetch_bucket_size",
                                       "stage3_param_persistence_threshold",
                                       "stage3_max_live_parameters",
                                       "stage3_max_reuse_distance",
                                       "zero_hpz_partition_size",
                                       "mics_shard_size"};

// "offload_param.buffer_size" is the plan's offload_param_buffer_size; max_in_cpu stands alone there.
void write_buffer(const PlanText& plan, const std::string& key, KeyWriter& writer) {
  std::string name = key;
  const std::size_t dot = name.find('.');
  name = name.ends_with("max_in_cpu") ? name.substr(dot + 1) : name.replace(dot, 1, "_");
  if (const Value* value = plan.find("sharding." + name)) writer.set("zero_optimization." + key, *value);
}

void write_offload(const ExportJob& job, const PlanText& plan, KeyWriter& writer) {
  const std::string& offload = job.plan.sharding.offload;
  if (offload == "none") return;
  const Value* pin = plan.find("sharding.pin_memory");
  const auto write = [&](const std::string& part, const std::string& device) {
    writer.set("zero_optimization." + part + ".device", Value::of(device));
    if (pin != nullptr) writer.set("zero_optimization." + part + ".pin_memory", *pin);
  };
  if (offload != "param") write("offload_optimizer", offload_device(plan, "offload_optimizer"));
  if (offload != "optimizer" && job.plan.sharding.zero == 3)
    write("offload_param", offload_device(plan, "offload_param"));
  for (const char* key : {"offload_optimizer.buffer_count", "offload_param.buffer_count", "offload_param.buffer_size",
                          "offload_param.max_in_cpu"})
    write_buffer(plan, key, writer);
}

void write_precision(const PlanText& plan, bool whole, KeyWriter& writer) {
  const std::string compute = compute_word(plan), precision = plan.word("precision");
  const Value* autocast = plan.find("sharding.torch_autocast");
  if (autocast != nullptr && autocast->is_bool() && autocast->as_bool()) {
    writer.set("torch_autocast.enabled", Value::of(true));
    return writer.set("torch_autocast.dtype", Value::of(compute == "fp16" ? "float16" : "bfloat16"));
  }
  const auto on = [&](const char* dtype) { return compute == dtype && whole ? Value::of(true) : Value::of(false); };
  writer.set("bf16.enabled", whole ? on("bf16") : Value::of("auto"));
  writer.set("fp16.enabled", whole ? on("fp16") : Value::of("auto"));
  if (precision != "pure-bf16") return;
  writer.set("bf16.bf16_master_weights_and_grads", Value::of(true));
  writer.set("bf16.bf16_optimizer_states", Value::of(plan.word("moment_dtype") != "fp32"));
}

// The optimizers that DeepSpeed makes itself; Hugging Face's arguments say all others.
void write_optimizer(const TrainingPlan& plan, KeyWriter& writer) {
  static constexpr std::pair<std::string_view, const char*> kTypes[] = {
      {"adam", "Adam"}, {"lamb", "Lamb"}, {"lion", "Lion"}, {"adagrad", "Adagrad"}, {"muon", "Muon"}, {"sgd", "SGD"}};
  for (const auto& [name, type] : kTypes) {
    if (plan.optimizer == name) writer.set("optimizer.type", Value::of(type));
  }
  if (plan.optimizer == "adamw" && plan.optimizer_impl == OptimizerImpl::fused)
    writer.set("optimizer.type", Value::of("FusedAdam"));
}

// For code that calls deepspeed.checkpointing.configure with the file.
void write_checkpointing(const PlanText& plan, KeyWriter& writer) {
  for (const std::string key :
       {"partition_activations", "cpu_checkpointing", "contiguous_memory_optimization", "number_checkpoints"})
    if (const Value* value = plan.find("sharding." + key)) writer.set("activation_checkpointing." + key, *value);
}

Value write(const ExportJob& job, Problems& problems) {
  require_engine(job, {Engine::deepspeed}, "deepspeed", problems);
  return deepspeed_tree(job, true);
}

}  // namespace

Value deepspeed_tree(const ExportJob& job, bool whole) {
  const PlanText plan(job.plan);
  KeyWriter writer({deepspeed_table()});
  const auto filled = [&](std::int64_t value) { return whole ? Value::of(value) : Value::of("auto"); };
  writer.set("train_micro_batch_size_per_gpu", filled(job.plan.batch));
  writer.set("gradient_accumulation_steps", filled(job.plan.accumulate));
  writer.set("gradient_clipping", whole ? Value::of(job.plan.clip ? 1.0 : 0.0) : Value::of("auto"));
  write_precision(plan, whole, writer);
  writer.set("zero_optimization.stage", Value::of(job.plan.sharding.zero));
  for (const std::string_view name : kSizes) {
    if (const Value* value = plan.find("sharding." + std::string(name)))
      writer.set("zero_optimization." + std::string(name), *value);
  }
  if (job.plan.sharding.zero == 3 && job.plan.save.state == "full")
    writer.set("zero_optimization.stage3_gather_16bit_weights_on_model_save", Value::of(true));
  write_offload(job, plan, writer);
  if (whole) write_optimizer(job.plan, writer);
  if (const Value* dtype = plan.find("sharding.grad_accum_dtype")) writer.set("data_types.grad_accum_dtype", *dtype);
  write_checkpointing(plan, writer);
  if (job.plan.parallel.tp > 1) writer.set("tensor_parallel.autotp_size", Value::of(job.plan.parallel.tp));
  if (job.plan.parallel.ulysses > 1) writer.set("sequence_parallel_size", Value::of(job.plan.parallel.ulysses));
  return writer.take();
}

Exporter deepspeed_exporter() { return {"deepspeed", "DeepSpeed's JSON", Syntax::json, true, write}; }

}  // namespace membill::io
