// Megatron's DistributedDataParallel and its optimizer: contiguous buffers of parameters and gradients in buckets, fp32 masters, whole or a
// share of each bucket (megatron-core 0.16 distributed/param_and_grad_buffer.py, optimizer/distrib_optimizer.py, optimizer.py).
#pragma once

#include <memory>

#include "estimate/engines/engine.h"

namespace membill {

[[nodiscard]] std::unique_ptr<EngineRun> make_megatron(Recorder& recorder, const TrainingPlan& plan,
                                                       const Hardware& hardware);

}  // namespace membill
