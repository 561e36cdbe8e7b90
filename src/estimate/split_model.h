// What one rank holds of a model whose own layers are split over tensor-parallel ranks (DeepSpeed's AutoTP), and whose model a job of
// any engine runs.
#pragma once

#include "membill/hardware.h"
#include "membill/model_spec.h"
#include "membill/training_plan.h"

namespace membill {

// Columns and rows of its linears are divided by `ranks`, those of its head too; embeddings and norms stay whole. The vocabulary is the
// model's. REQUIRES: `ranks` divides heads, widths and vocabulary.
[[nodiscard]] ModelSpec split_model(const ModelSpec& model, std::int64_t ranks);

// Whether the model's own layers are split so.
[[nodiscard]] bool splits_layers(const TrainingPlan& plan);

// The model that the rank runs: Megatron's part of its stage, a part of the model, or all of it with what the stage makes of its head.
[[nodiscard]] ModelSpec model_on_rank(const ModelSpec& given, const TrainingPlan& given_plan, const TrainingPlan& plan,
                                      const Hardware& hardware);

}  // namespace membill
