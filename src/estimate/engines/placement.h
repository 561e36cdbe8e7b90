// Where an engine puts the parameters that modules see: tensors of their own, or placeholders for what it gathers or keeps flat.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/engine_keys.h"
#include "membill/hardware.h"
#include "membill/training_plan.h"
#include "program/recorder.h"

namespace membill {

// Whether FSDP runs the job, either generation.
[[nodiscard]] bool is_fsdp(const TrainingPlan& plan);
// Whether the engine holds parameters in shards: modules then have no memory of their own between the engine's gathers.
[[nodiscard]] bool shards_parameters(const TrainingPlan& plan);
// The type in which FSDP gathers parameters (MixedPrecision's param_dtype); none: as stored. Not given: what accelerate sets in the
// Trainer, the compute type of a mixed precision.
[[nodiscard]] std::optional<DType> gathered_dtype(const TrainingPlan& plan);
// The type in which FSDP reduces gradients when the plan names one; the Trainer's default is the gathered type.
[[nodiscard]] std::optional<DType> named_reduce_dtype(const TrainingPlan& plan);
// The type in which FSDP stores a parameter of type `dtype`: accelerate makes trained ones fp32 under mixed precision.
[[nodiscard]] DType stored_dtype(const TrainingPlan& plan, DType dtype, bool trained);
// What DeepSpeed's offload sections name; below stage 3 it takes NVMe for host memory.
struct OffloadPlan {
  bool optimizer = false, parameters = false, optimizer_on_nvme = false, parameters_on_nvme = false;
};
[[nodiscard]] OffloadPlan offload_plan(const TrainingPlan& plan);
// Whether a parameter is a tensor of its own: not where the engine shards it or holds it in a flat group.
[[nodiscard]] bool has_own_memory(const TrainingPlan& plan, bool trained);
// Whether ZeRO-3 divides the model over groups of ranks only (MiCS), as DeepSpeed before 0.19.8 does.
[[nodiscard]] bool runs_mics(const TrainingPlan& plan);
// Cards that share a parameter: of FSDP's hybrid group, one node's unless the plan says otherwise; of a group of MiCS; else all.
[[nodiscard]] std::int64_t sharding_ranks(const TrainingPlan& plan, const Hardware& hardware);
// The rank's place among those that divide ZeRO's states: all, or one of each tensor-parallel group. Not named: the last.
struct DataRanks {
  std::int64_t count = 1, own = 0;
};
[[nodiscard]] DataRanks data_ranks(const TrainingPlan& plan, const Hardware& hardware);
// Whether Megatron's GPT runs, under its own engine or DeepSpeed.
[[nodiscard]] bool runs_megatron_layers(const TrainingPlan& plan);
// Whether the packed codes are buffers of their modules, as gptqmodel's are: no engine shards them.
[[nodiscard]] bool codes_are_buffers(const TrainingPlan& plan);
// Whether the packed codes are parameters of an integer type, a row a group, as hqq's are.
[[nodiscard]] bool codes_are_integers(const TrainingPlan& plan);
// Whether FSDP cuts the packed codes of quantised weights: bitsandbytes' only as a floating type (bnb_4bit_quant_storage).
[[nodiscard]] bool shards_codes(const TrainingPlan& plan);
// A parameter's tensor: allocated, or a placeholder in the type that modules compute with.
[[nodiscard]] Tensor place_parameter(Recorder& recorder, const TrainingPlan& plan, const Shape& shape, DType dtype,
                                     const char* label, ItemId item, bool trained);

// The type in which bnb_4bit_quant_storage keeps packed codes.
[[nodiscard]] DType code_storage(const TrainingPlan& plan);
// The type of the whole model under DeepSpeed: 16 bits beside an fp32 master, or fp32, as under torch_autocast.
[[nodiscard]] DType deepspeed_dtype(const TrainingPlan& plan);
// DeepSpeed's torch_autocast section: fp32 weights under autocast, where DeepSpeed otherwise makes the whole model 16-bit.
[[nodiscard]] bool runs_torch_autocast(const TrainingPlan& plan);
// The type in which DeepSpeed accumulates gradients: the model's own unless data_types.grad_accum_dtype names one.
[[nodiscard]] DType accumulation_dtype(const TrainingPlan& plan);

}  // namespace membill
