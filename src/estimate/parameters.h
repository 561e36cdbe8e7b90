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
// Whether PEFT adds what trains and freezes the base: adapters on linears, or virtual tokens.
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
  bool on_host = false;         // the parameter itself lives there, and so does all that the optimizer makes for it
  bool on_nvme = false;         // in files, rather
  Size stacked = Size(1);       // matrices that lie in one tensor of three axes, each `of_stack`: fused experts
  Shape of_stack = {};

  // The matrix of `parameter`, or each of a stack of them; width 1: a vector.
  [[nodiscard]] const Shape& matrix() const { return stacked == Size(1) ? parameter->value.shape() : of_stack; }
};

struct JobModules {
  ModelModules model;
  std::vector<TrainedParameter> trained;  // in model.parameters() order, simulated units only
  std::vector<Tensor> buffers;
  std::vector<std::unique_ptr<QuantizedWeight>> packed_experts;
  std::vector<Tensor> idle;  // weights that no batch reaches; placeholders where an engine shards parameters
  Modules idle_modules;      // that own them, and their adapters: no gradient ever comes
  std::vector<TrainedParameter> idle_trained;               // what the optimizer gets of these all the same
  std::vector<std::unique_ptr<Parameter>> idle_parameters;  // weights among them
  std::int64_t trainable_elements = 0;                      // of the whole model
};

// Makes every module of the model, allocating weights, buffers and adapters as loading and PEFT do, and tells `writer` the units.
// `weights_item`: what the base weights belong to. Throws InputError when an adapter target matches nothing.
[[nodiscard]] JobModules build_modules(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan,
                                       const Dims& dims, bool expand, std::string_view weights_item = "weights.base");

}  // namespace membill
