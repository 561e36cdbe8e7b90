// What is odd about a job that validate() accepts.
#pragma once

#include <string>
#include <vector>

#include "membill/model_spec.h"
#include "membill/training_plan.h"

namespace membill {

// One sentence each, without a full stop; for Report::warnings.
[[nodiscard]] std::vector<std::string> plan_warnings(const ModelSpec& model, const TrainingPlan& plan);

}  // namespace membill
