// DeepSpeed ZeRO stages 1 and 2 (deepspeed 0.19 runtime/zero/stage_1_and_2.py): flat 16-bit parameters on every rank, one partition of
// fp32 master weights and moments, gradients reduced through buckets.
#pragma once

#include "estimate/engines/engine.h"

namespace membill {

[[nodiscard]] std::unique_ptr<EngineRun> make_zero12(Recorder& recorder, const TrainingPlan& plan,
                                                     const Hardware& hardware, std::int64_t hidden);

}  // namespace membill
