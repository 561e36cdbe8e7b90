// What a report says of the images of a batch.
#pragma once

#include <string>
#include <vector>

#include "membill/model_spec.h"
#include "membill/training_plan.h"

namespace membill {

// Assumptions, none for a batch of text.
[[nodiscard]] std::vector<std::string> image_notes(const ModelSpec& model, const TrainingPlan& plan);

}  // namespace membill
