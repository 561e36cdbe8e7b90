#include "io/exporters/llamafactory_megatron.h"

#include "base/engine_keys.h"
#include "base/text.h"

namespace membill::io {
namespace {

void write_degrees(const ParallelPlan& parallel, KeyWriter& writer) {
  const std::pair<const char*, std::int64_t> degrees[] = {
      {"tensor_model_parallel_size", parallel.tp},
      {"pipeline_model_parallel_size", parallel.pp},
      {"context_parallel_size", parallel.cp},
      {"expert_model_parallel_size", parallel.ep},
      {"virtual_pipeline_model_parallel_size", parallel.virtual_pp}};
  for (const auto& [key, degree] : degrees)
    if (degree > 1 || std::string_view(key).starts_with("tensor")) writer.set(key, Value::of(degree));
  if (parallel.ep > 1) writer.set("expert_tensor_parallel_size", Value::of(parallel.expert_tp));
  if (parallel.sp) writer.set("sequence_parallel", Value::of(true));
}

void write_recompute(const CheckpointPlan& plan, KeyWriter& writer) {
  if (plan.mode == Checkpointing::none) return;
  writer.set("recompute_granularity", Value::of(plan.mode == Checkpointing::full ? "full" : "selective"));
  if (plan.mode == Checkpointing::selective)
    return writer.set("recompute_modules", Value::of(join(plan.selective, ",")));
  if (!plan.method.empty()) writer.set("recompute_method", Value::of(plan.method));
  if (plan.layers) writer.set("recompute_num_layers", Value::of(*plan.layers));
}

void write_engine(const TrainingPlan& plan, KeyWriter& writer) {
  writer.set("use_distributed_optimizer", Value::of(plan.sharding.zero == 1));
  for (const char* key :
       {"overlap_grad_reduce", "cross_entropy_loss_fusion", "moe_grouped_gemm", "moe_pad_expert_input_to_capacity"})
    if (engine_flag(plan, key, false)) writer.set(key, Value::of(true));
  for (const char* key : {"moe_token_dispatcher_type", "moe_router_dtype"})
    if (const std::string word = engine_word(plan, key, ""); !word.empty()) writer.set(key, Value::of(word));
}

}  // namespace

void write_llamafactory_megatron(const ExportJob& job, KeyWriter& writer) {
  const TrainingPlan& plan = job.plan;
  writer.set("per_device_train_batch_size", Value::of(plan.batch));
  writer.set("gradient_accumulation_steps", Value::of(plan.accumulate));
  if (!plan.clip) writer.set("max_grad_norm", Value::of(0.0, "0.0"));
  const bool half = plan.precision == Precision::master_fp16;
  if (half || plan.precision == Precision::master_bf16) writer.set(half ? "fp16" : "bf16", Value::of(true));
  writer.set("transformer_impl", Value::of(plan.attention == AttentionKernel::flash ? "transformer_engine" : "local"));
  write_degrees(plan.parallel, writer);
  write_recompute(plan.checkpointing, writer);
  write_engine(plan, writer);
}

}  // namespace membill::io
