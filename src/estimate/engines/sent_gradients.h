// The type in which DeepSpeed sends gradients to be reduced: the model's, but fp32 where ranks share sequences (deepspeed 0.19
// runtime/engine.py communication_data_type, runtime/constants.py SEQ_PARALLEL_COMMUNICATION_DATA_TYPE).
#pragma once

#include "blocks/sequence_spread.h"
#include "estimate/engines/placement.h"

namespace membill {

[[nodiscard]] inline DType sent_dtype(const TrainingPlan& plan) {
  return sequence_ranks(plan) > 1 ? DType::fp32 : deepspeed_dtype(plan);
}

}  // namespace membill
