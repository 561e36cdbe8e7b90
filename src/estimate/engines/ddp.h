// torch.nn.parallel.DistributedDataParallel (torch 2.15 torch/csrc/distributed/c10d/reducer.cpp).
#pragma once

#include "estimate/engines/engine.h"

namespace membill {

// Whether parameters without a gradient are looked for: DDP then also copies every tensor that the model returns (_DDPSink).
[[nodiscard]] bool looks_for_unused(const TrainingPlan& plan);

[[nodiscard]] std::unique_ptr<EngineRun> make_ddp(Recorder& recorder, const TrainingPlan& plan);

}  // namespace membill
