#include "estimate/engines/placement.h"

#include "membill/catalog.h"

namespace membill {
namespace {

bool is_trainers_mixed_precision(const TrainingPlan& plan) {
  return plan.loop == Loop::trainer && regime(plan.precision).autocast;
}

std::optional<DType> floating(const std::string& word) {
  if (word == "bf16") return DType::bf16;
  if (word == "fp16") return DType::fp16;
  if (word == "fp32") return DType::fp32;
  return std::nullopt;
}

}  // namespace

bool is_fsdp(const TrainingPlan& plan) { return plan.engine == Engine::fsdp || plan.engine == Engine::fsdp2; }

bool shards_parameters(const TrainingPlan& plan) {
  if (is_fsdp(plan)) return plan.sharding.fsdp != "none";
  return plan.engine == Engine::deepspeed && plan.sharding.zero == 3;
}

std::optional<DType> gathered_dtype(const TrainingPlan& plan) {
  if (!is_fsdp(plan) || !shards_parameters(plan)) return std::nullopt;
  const std::string word = engine_word(plan, "param_dtype", "");
  if (word.empty() && is_trainers_mixed_precision(plan)) return regime(plan.precision).compute;
  return floating(word);
}

std::optional<DType> named_reduce_dtype(const TrainingPlan& plan) {
  const std::string word = engine_word(plan, "reduce_dtype", "");
  if (word.empty() && is_trainers_mixed_precision(plan)) return gathered_dtype(plan);
  return floating(word);
}

DType stored_dtype(const TrainingPlan& plan, DType dtype, bool trained) {
  const bool upcast =
      is_fsdp(plan) && trained && is_trainers_mixed_precision(plan) && !weight_format(plan.weights).quantized;
  return upcast ? DType::fp32 : dtype;
}

std::int64_t sharding_ranks(const TrainingPlan& plan, const Hardware& hardware) {
  if (runs_mics(plan)) return static_cast<std::int64_t>(engine_number(plan, "mics_shard_size", 1));
  if (plan.sharding.fsdp != "hybrid_shard") return hardware.count;
  return plan.sharding.shard_group.value_or(hardware.count / hardware.nodes);
}

bool runs_mics(const TrainingPlan& plan) {
  return plan.engine == Engine::deepspeed && plan.sharding.zero == 3 && engine_number(plan, "mics_shard_size", 0) > 0;
}

DataRanks data_ranks(const TrainingPlan& plan, const Hardware& hardware) {
  const std::int64_t tp = plan.parallel.tp, count = hardware.count / tp;
  return {count, hardware.rank ? *hardware.rank / tp : count - 1};
}

bool runs_megatron_layers(const TrainingPlan& plan) {
  return plan.engine == Engine::megatron || plan.implementation == Implementation::megatron;
}

bool codes_are_buffers(const TrainingPlan& plan) {
  const Packing packing = weight_format(plan.weights).packing;
  return packing == Packing::gptq || packing == Packing::awq;
}

bool codes_are_integers(const TrainingPlan& plan) {
  return weight_format(plan.weights).packing == Packing::half_quadratic;
}

bool shards_codes(const TrainingPlan& plan) {
  return is_fsdp(plan) && shards_parameters(plan) && (code_storage(plan) != DType::uint8 || codes_are_integers(plan));
}

DType code_storage(const TrainingPlan& plan) {
  return floating(engine_word(plan, "quant_storage", "uint8")).value_or(DType::uint8);
}

bool runs_torch_autocast(const TrainingPlan& plan) {
  return plan.engine == Engine::deepspeed && engine_flag(plan, "torch_autocast", false);
}

DType deepspeed_dtype(const TrainingPlan& plan) {
  return runs_torch_autocast(plan) ? DType::fp32 : regime(plan.precision).compute;
}

DType accumulation_dtype(const TrainingPlan& plan) {
  return floating(engine_word(plan, "grad_accum_dtype", "")).value_or(deepspeed_dtype(plan));
}

OffloadPlan offload_plan(const TrainingPlan& plan) {
  const std::string& offload = plan.sharding.offload;
  const bool third = plan.sharding.zero == 3, nvme = offload == "nvme";
  OffloadPlan result;
  result.optimizer = nvme || offload.find("optimizer") != std::string::npos;
  result.parameters = third && (nvme || offload.find("param") != std::string::npos);
  const auto is_nvme = [&](const char* key) { return engine_word(plan, key, nvme ? "nvme" : "cpu") == "nvme"; };
  result.optimizer_on_nvme = third && result.optimizer && is_nvme("offload_optimizer_device");
  result.parameters_on_nvme = result.parameters && is_nvme("offload_param_device");
  return result;
}

// FSDP shards or flattens every parameter; ZeRO-3 partitions every one; ZeRO-1 and 2 flatten the trained ones, and so does
// Megatron's distributed optimizer.
bool has_own_memory(const TrainingPlan& plan, bool trained) {
  if (shards_parameters(plan)) return false;
  if (plan.engine == Engine::megatron) return plan.sharding.zero < 1 || !trained;
  return plan.engine != Engine::deepspeed || plan.sharding.zero < 1 || !trained;
}

Tensor place_parameter(Recorder& recorder, const TrainingPlan& plan, const Shape& shape, DType dtype, const char* label,
                       ItemId item, bool trained) {
  if (has_own_memory(plan, trained)) return recorder.empty(shape, dtype, label, item);
  return recorder.placeholder(shape, gathered_dtype(plan).value_or(dtype));
}

}  // namespace membill
