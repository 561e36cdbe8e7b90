// Where an engine puts the parameters that modules see: tensors of their own, or placeholders for what it gathers or keeps flat.
#pragma once

#include <optional>

#include "membill/training_plan.h"
#include "program/recorder.h"

namespace membill {

// Whether the engine holds parameters in shards: modules then have no memory of their own between the engine's gathers.
[[nodiscard]] bool shards_parameters(const TrainingPlan& plan);
// The type in which FSDP gathers parameters (MixedPrecision's param_dtype); none: as stored. Not given: what accelerate sets in the
// Trainer, the compute type of a mixed precision.
[[nodiscard]] std::optional<DType> gathered_dtype(const TrainingPlan& plan);
// The type in which FSDP reduces gradients when the plan names one; the Trainer's default is the gathered type.
[[nodiscard]] std::optional<DType> named_reduce_dtype(const TrainingPlan& plan);
// The type in which FSDP stores a parameter of type `dtype`: accelerate makes trained ones fp32 under mixed precision.
[[nodiscard]] DType stored_dtype(const TrainingPlan& plan, DType dtype, bool trained);
// Whether a parameter is a tensor of its own: not where the engine shards it or holds it in a flat group.
[[nodiscard]] bool has_own_memory(const TrainingPlan& plan, bool trained);
// A parameter's tensor: allocated, or a placeholder in the type that modules compute with.
[[nodiscard]] Tensor place_parameter(Recorder& recorder, const TrainingPlan& plan, const Shape& shape, DType dtype,
                                     const char* label, ItemId item, bool trained);

// A value of plan.sharding.engine_keys: as written, as a number or as a flag; `fallback` when it is absent or auto.
[[nodiscard]] std::string engine_word(const TrainingPlan& plan, const char* key, const char* fallback);
[[nodiscard]] double engine_number(const TrainingPlan& plan, const char* key, double fallback);
[[nodiscard]] bool engine_flag(const TrainingPlan& plan, const char* key, bool fallback);

}  // namespace membill
