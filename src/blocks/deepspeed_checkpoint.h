// Inputs of deepspeed.checkpointing.checkpoint (deepspeed 0.19 runtime/activation_checkpointing/checkpointing.py): each rank of a
// tensor-parallel group keeps its part, or the host has them.
#pragma once

#include <cstdint>
#include <memory>

#include "membill/training_plan.h"
#include "program/checkpoint_inputs.h"

namespace membill {

// Whether the model's code calls that function instead of torch.utils.checkpoint: a key of DeepSpeed's activation_checkpointing is on.
[[nodiscard]] bool calls_deepspeed_checkpoint(const TrainingPlan& plan);

// Of a whole job. nullptr: the code does not call it.
[[nodiscard]] std::unique_ptr<InputKeeper> deepspeed_inputs(const TrainingPlan& plan);

}  // namespace membill
