// LoRA on Megatron's linears, which join those of Hugging Face (modelscope/mcore-bridge 1.6 tuners/lora.py, ms-swift 4.6 megatron).
#pragma once

#include <cstdint>

#include "membill/model_spec.h"
#include "membill/problem.h"
#include "membill/training_plan.h"

namespace membill {

// The adapters of `plan` by the names of Megatron's modules: one on each joined linear of which a part is named.
[[nodiscard]] AdapterPlan as_megatron_adapts(const AdapterPlan& plan);

// Parameters of the adapters of the whole model. Throws OverflowError.
[[nodiscard]] std::int64_t megatron_adapter_parameters(const ModelSpec& model, const TrainingPlan& plan);

// Targets that name no linear of Megatron's.
void check_megatron_targets(const TrainingPlan& plan, Problems& problems);

}  // namespace membill
