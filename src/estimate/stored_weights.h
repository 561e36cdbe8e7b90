// The storage of the base weights where the user leaves it to the checkpoint.
#pragma once

#include <string>

#include "membill/hardware.h"
#include "membill/model_spec.h"
#include "membill/training_plan.h"

namespace membill {

// What a use of packed weights is taken to make, where kernels differ; empty: they do not.
[[nodiscard]] std::string packing_note(const TrainingPlan& plan);

// Takes what the checkpoint's quantization_config says into `plan`, or its dequantised form where the job cannot use it. Returns what was
// assumed; empty: the weights are as stored.
std::string take_stored_weights(const StoredWeights& stored, const ModelSpec& model, const Hardware& hardware,
                                TrainingPlan& plan);

}  // namespace membill
