// torch.nn.parallel.DistributedDataParallel (torch 2.15 torch/csrc/distributed/c10d/reducer.cpp).
#pragma once

#include "estimate/engines/engine.h"

namespace membill {

[[nodiscard]] std::unique_ptr<EngineRun> make_ddp(Recorder& recorder, const TrainingPlan& plan);

}  // namespace membill
