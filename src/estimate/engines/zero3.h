// DeepSpeed ZeRO stage 3 (deepspeed 0.19 runtime/zero/stage3.py, partition_parameters.py): every parameter is cut into one part a rank;
// modules gather theirs while they run.
#pragma once

#include "estimate/engines/engine.h"

namespace membill {

[[nodiscard]] std::unique_ptr<EngineRun> make_zero3(Recorder& recorder, const ModelSpec& model,
                                                    const TrainingPlan& plan, const Hardware& hardware);

}  // namespace membill
