// What of parallel.cp and parallel.ulysses outside of Megatron is wrong, and what is not billed.
#pragma once

#include <string>

#include "membill/model_spec.h"
#include "membill/problem.h"
#include "membill/training_plan.h"

namespace membill {

// Degrees that the sequence or the heads do not allow, and code that spreads sequences in another way.
void check_sequence_ranks(const ModelSpec& model, const TrainingPlan& plan, Problems& problems);
// The text that names what is not billed; empty: all of it is.
[[nodiscard]] std::string unbilled_sequence_parallelism(const TrainingPlan& plan);

}  // namespace membill
