// The ranks of a job whose bills may differ.
#pragma once

#include <string>
#include <vector>

#include "membill/hardware.h"
#include "membill/training_plan.h"

namespace membill {

struct RankKind {
  std::int64_t rank = 0;  // the first of its kind
  std::string name;       // "rank 0"; "stage 2" of a pipeline
};

// One of each kind: a rank of every pipeline stage, in order; under ZeRO's first two stages, which give every rank other tensors, the
// last rank (whose tensors come first in the backward) and the first. The one that hardware.rank names, where it names one.
[[nodiscard]] std::vector<RankKind> distinct_ranks(const TrainingPlan& plan, const Hardware& hardware);

}  // namespace membill
