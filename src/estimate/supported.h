// What this version bills. validate() refuses the rest with one line each.
#pragma once

#include <vector>

#include "membill/problem.h"
#include "membill/training_plan.h"

namespace membill {

// One problem for each part of `plan` that is valid and not billed yet.
[[nodiscard]] std::vector<Problem> not_billed_yet(const TrainingPlan& plan);

}  // namespace membill
