// The parameters of a job: which exist, in which type, which train; and the modules that hold them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "blocks/causal_lm.h"
#include "membill/model_spec.h"
#include "membill/training_plan.h"
#include "program/recorder.h"

namespace membill {

// Type of a parameter of the base model as it is stored.
[[nodiscard]] DType base_dtype(const TrainingPlan& plan);
// Type of the base parameters that a quantised storage leaves alone: prepare_model_for_kbit_training makes them fp32.
[[nodiscard]] DType unquantized_dtype(const TrainingPlan& plan);
// Of one of them: TRL before 1.0 takes embeddings and head back.
[[nodiscard]] DType unquantized_dtype(const TrainingPlan& plan, TensorRole role);
// Whether k-bit preparation turns the parameters beside such weights to fp32.
[[nodiscard]] bool is_cast_for_kbit(WeightFormat format);
// Whether the engine holds parameters in shards: modules then have no memory of their own between the engine's gathers.
[[nodiscard]] bool shards_parameters(const TrainingPlan& plan);
// The type in which FSDP gathers parameters (MixedPrecisionPolicy.param_dtype); none: as stored.
[[nodiscard]] std::optional<DType> gathered_dtype(const TrainingPlan& plan);
// Whether a parameter is a tensor of its own: not where the engine shards it or holds it in a flat group.
[[nodiscard]] bool has_own_memory(const TrainingPlan& plan, bool trained);
// A parameter's tensor: allocated, or a placeholder where the engine shards it or holds it in a flat group.
[[nodiscard]] Tensor place_parameter(Recorder& recorder, const TrainingPlan& plan, const Shape& shape, DType dtype,
                                     const char* label, ItemId item, bool trained);
// Whether PEFT puts low-rank adapters on linears.
[[nodiscard]] bool has_adapters(const TrainingPlan& plan);
// Type of adapter matrices over such a base.
[[nodiscard]] DType adapter_dtype(const TrainingPlan& plan);

// A parameter that the optimizer updates.
struct TrainedParameter {
  Parameter* parameter = nullptr;
  TensorRole role = TensorRole::other;
  Size elements;
  Tensor master = {};           // the fp32 copy that the optimizer updates, in regimes that have one
  bool master_on_host = false;  // it exists, in host memory
};

struct JobModules {
  ModelModules model;
  std::vector<TrainedParameter> trained;  // in model.parameters() order, simulated units only
  std::vector<Tensor> buffers;
  std::int64_t trainable_elements = 0;  // of the whole model
};

// Makes every module of the model, allocating weights, buffers and adapters as loading and PEFT do, and tells `writer` the units.
// `weights_item`: what the base weights belong to. Throws InputError when an adapter target matches nothing.
[[nodiscard]] JobModules build_modules(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan,
                                       const Dims& dims, bool expand, std::string_view weights_item = "weights.base");

}  // namespace membill
