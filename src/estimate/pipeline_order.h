// The order in which a pipeline stage runs forwards and backwards (megatron-core 0.16 pipeline_parallel/schedules.py).
#pragma once

#include <cstdint>
#include <vector>

#include "membill/training_plan.h"

namespace membill {

struct PipelineTurn {
  bool forward = true;
  std::int64_t chunk = 0;        // of the stage
  std::int64_t micro_batch = 0;  // from 0
};

// Where in which pipeline. `micro_batches`: of one step.
struct PipelineStage {
  std::int64_t stages = 1, stage = 0, chunks = 1, micro_batches = 1;
};

// 1F1B: as many forwards as later stages need first, then one forward and one backward in turn, then the backwards that are left.
// Interleaved, with chunks > 1: the same over chunks, in groups of as many micro-batches as there are stages.
[[nodiscard]] std::vector<PipelineTurn> pipeline_order(const PipelineStage& place);

// The number of micro-batches beyond which a step repeats itself; at most place.micro_batches.
[[nodiscard]] std::int64_t distinct_micro_batches(const PipelineStage& place);

}  // namespace membill
