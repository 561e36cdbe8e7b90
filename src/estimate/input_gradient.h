// Whether the embedding's output is made to need a gradient, so that what follows has one although it trains nothing below.
#pragma once

#include "membill/training_plan.h"

namespace membill {

[[nodiscard]] bool input_needs_gradient(const TrainingPlan& plan);

}  // namespace membill
