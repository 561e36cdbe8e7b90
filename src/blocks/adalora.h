// AdaLoRA: adapters with singular values, and the loss that keeps their matrices orthogonal (peft 0.21.2).
#pragma once

#include "blocks/causal_lm.h"

namespace membill {

// What the adapter of AdaLoRA makes of its input, to be added to the base result. `type`: converts the output to it.
[[nodiscard]] Tensor adalora_output(Forward& f, LoraAdapter& adapter, const Tensor& x, std::optional<DType> type);

// The model's loss with how far A·Aᵀ and Bᵀ·B of every adapter are from identity matrices (tuners/adalora/model.py forward).
[[nodiscard]] Tensor with_orthogonality(Forward& f, ModelModules& modules, Tensor loss);

}  // namespace membill
