// The head of a model whose layers DeepSpeed's AutoTP splits: each rank's part of the vocabulary, gathered (deepspeed 0.19
// module_inject/layers.py GatherFromTensorParallelRegion).
#pragma once

#include "blocks/forward.h"

namespace membill {

[[nodiscard]] bool gathers_split_logits(const TrainingPlan& plan);
// Whole logits from this rank's.
[[nodiscard]] Tensor with_gathered_logits(Forward& f, Tensor logits);

}  // namespace membill
