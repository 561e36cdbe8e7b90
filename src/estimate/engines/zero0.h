// DeepSpeed without partitions (deepspeed 0.19 runtime/fp16/unfused_optimizer.py): 16-bit parameters, an fp32 copy and moments of each
// tensor made at engine start; fp32 parameters under the optimizer itself. Gradients are reduced through flat copies.
#pragma once

#include "estimate/engines/engine.h"

namespace membill {

[[nodiscard]] std::unique_ptr<EngineRun> make_zero0(Recorder& recorder, const TrainingPlan& plan);

}  // namespace membill
