// The keys of a Megatron step: micro-batches, degrees, recompute, precision, the optimizer, experts, checkpoints.
#include <algorithm>

#include "base/engine_keys.h"
#include "base/text.h"
#include "io/exporters/formats.h"

namespace membill::io {
namespace {

void write_degrees(const ParallelPlan& parallel, bool experts, KeyWriter& writer) {
  const std::pair<const char*, std::int64_t> degrees[] = {
      {"tensor_model_parallel_size", parallel.tp},
      {"pipeline_model_parallel_size", parallel.pp},
      {"context_parallel_size", parallel.cp},
      {"expert_model_parallel_size", parallel.ep},
      {"num_virtual_stages_per_pipeline_rank", parallel.virtual_pp}};
  for (const auto& [key, degree] : degrees)
    if (degree > 1 || std::string_view(key).starts_with("tensor")) writer.set(key, Value::of(degree));
  if (experts || parallel.ep > 1 || parallel.expert_tp > 1)
    writer.set("expert_tensor_parallel_size", Value::of(parallel.expert_tp));
  if (parallel.sp) writer.set("sequence_parallel", Value::of(true));
}

void write_batch(const ExportJob& job, KeyWriter& writer) {
  const ParallelPlan& parallel = job.plan.parallel;
  const std::int64_t replica = checked_mul(checked_mul(parallel.tp, parallel.pp), parallel.cp);
  const std::int64_t replicas = std::max<std::int64_t>(1, job.count / std::max<std::int64_t>(1, replica));
  writer.set("micro_batch_size", Value::of(job.plan.batch));
  writer.set("global_batch_size", Value::of(checked_mul(checked_mul(job.plan.batch, job.plan.accumulate), replicas)));
}

void write_precision(const TrainingPlan& plan, KeyWriter& writer, Problems& problems) {
  const bool half = plan.precision == Precision::master_fp16, wide = plan.precision == Precision::fp32;
  if (!half && !wide && plan.precision != Precision::master_bf16)
    problems.add({"", "precision", PlanText(plan).word("precision") + " is none of Megatron's", "master-bf16"});
  if (!wide) writer.set(half ? "fp16" : "bf16", Value::of(true));
  if (engine_word(plan, "grad_accum_dtype", "") == "bf16") writer.set("grad_reduce_in_bf16", Value::of(true));
  if (const std::string moment = PlanText(plan).word("moment_dtype"); !moment.empty())
    writer.set("exp_avg_dtype", Value::of(moment));
}

void write_attention(const TrainingPlan& plan, KeyWriter& writer) {
  if (plan.attention == AttentionKernel::flash) return writer.set("attention_backend", Value::of("flash"));
  writer.set("attention_backend", Value::of("unfused"));
  if (plan.attention == AttentionKernel::eager && plan.precision != Precision::fp32)
    writer.set("no_masked_softmax_fusion", Value::of(true));
}

void write_optimizer(const TrainingPlan& plan, KeyWriter& writer, Problems& problems) {
  const bool known = plan.optimizer == "adamw" || plan.optimizer == "sgd" || plan.optimizer == "muon";
  if (!known) problems.add({"", "optimizer", quoted(plan.optimizer) + " is none of Megatron's", "adamw, sgd or muon"});
  writer.set("optimizer", Value::of(plan.optimizer == "adamw" ? std::string("adam") : plan.optimizer));
  if (!plan.clip) writer.set("clip_grad", Value::of(0.0, "0.0"));
  writer.set("use_distributed_optimizer", Value::of(plan.sharding.zero == 1));
  if (plan.sharding.offload == "optimizer") writer.set("optimizer_cpu_offload", Value::of(true));
}

void write_engine(const TrainingPlan& plan, bool experts, KeyWriter& writer) {
  if (!engine_flag(plan, "gradient_accumulation_fusion", false))
    writer.set("no_gradient_accumulation_fusion", Value::of(true));
  for (const char* key : {"overlap_grad_reduce", "cross_entropy_loss_fusion", "distribute_saved_activations",
                          "moe_grouped_gemm", "moe_pad_expert_input_to_capacity"})
    if (engine_flag(plan, key, false)) writer.set(key, Value::of(true));
  for (const char* key :
       {"cross_entropy_fusion_impl", "moe_token_dispatcher_type", "moe_router_dtype", "moe_router_load_balancing_type",
        "moe_expert_capacity_factor", "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers"})
    if (const std::string word = engine_word(plan, key, ""); !word.empty()) writer.set(key, flag_value(word));
  if (experts && engine_word(plan, "moe_token_dispatcher_type", "").empty())
    writer.set("moe_token_dispatcher_type", Value::of("alltoall"));
  if (plan.parallel.ep > 1 && !engine_flag(plan, "moe_grouped_gemm", false))
    writer.set("moe_grouped_gemm", Value::of(false));
  if (!engine_word(plan, "moe_router_load_balancing_type", "").empty())
    writer.set("moe_aux_loss_coeff", Value::of(0.01, "0.01"));
}

void write_saving(const TrainingPlan& plan, KeyWriter& writer) {
  if (plan.save.state == "none") return;
  writer.set("save", Value::of("checkpoints"));
  if (plan.save.state == "full") writer.set("dist_ckpt_optim_fully_reshardable", Value::of(true));
  if (!plan.save.optimizer) writer.set("no_save_optim", Value::of(true));
}

}  // namespace

void write_megatron_step(const ExportJob& job, bool experts, KeyWriter& writer, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  require_engine(job, {Engine::megatron}, "Megatron", problems);
  write_batch(job, writer);
  write_degrees(plan.parallel, experts, writer);
  const CheckpointPlan& recompute = plan.checkpointing;
  if (recompute.mode != Checkpointing::none)
    writer.set("recompute_granularity", Value::of(recompute.mode == Checkpointing::full ? "full" : "selective"));
  if (recompute.mode == Checkpointing::selective) writer.set("recompute_modules", text_list(recompute.selective));
  if (recompute.mode == Checkpointing::full && !recompute.method.empty())
    writer.set("recompute_method", Value::of(recompute.method));
  if (recompute.mode == Checkpointing::full && recompute.layers)
    writer.set("recompute_num_layers", Value::of(*recompute.layers));
  write_precision(plan, writer, problems);
  write_attention(plan, writer);
  write_optimizer(plan, writer, problems);
  write_engine(plan, experts, writer);
  write_saving(plan, writer);
}

}  // namespace membill::io
