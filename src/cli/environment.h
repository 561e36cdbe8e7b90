#ifndef MEMBILL_CLI_ENVIRONMENT_H_
#define MEMBILL_CLI_ENVIRONMENT_H_

#include <string>

#include "membill/problem.h"
#include "membill/training_plan.h"

namespace membill::cli {

// Applies PYTORCH_ALLOC_CONF, or the older PYTORCH_CUDA_ALLOC_CONF where that is not set, to the plan's allocator. Returns what a report
// has to say of it; empty: neither says anything.
[[nodiscard]] std::string apply_environment(TrainingPlan& plan, Problems& problems);

}  // namespace membill::cli

#endif  // MEMBILL_CLI_ENVIRONMENT_H_
