// ZeRO-1 over bf16 weights with fp32 accumulation (deepspeed 0.19 runtime/bf16_optimizer.py): an fp32 gradient of every trained tensor, whole
// on every rank from the start on, beside the bf16 gradients of a step.
#pragma once

#include "estimate/engines/engine.h"

namespace membill {

// Whether DeepSpeed's engine takes this optimizer for `plan`.
[[nodiscard]] bool runs_bf16_optimizer(const TrainingPlan& plan);

[[nodiscard]] std::unique_ptr<EngineRun> make_bf16_optimizer(Recorder& recorder, const TrainingPlan& plan,
                                                             const Hardware& hardware);

}  // namespace membill
