// torch.distributed.fsdp.FullyShardedDataParallel (torch 2.15 _runtime_utils.py): every layer is a unit with one flat parameter, the rest
// of the model is the root unit; PEFT's policy makes every adapter matrix a unit.
#pragma once

#include "estimate/engines/engine.h"

namespace membill {

[[nodiscard]] std::unique_ptr<EngineRun> make_fsdp1(Recorder& recorder, const TrainingPlan& plan,
                                                    const Hardware& hardware);

}  // namespace membill
