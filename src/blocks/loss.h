// The loss of a causal language model as Transformers computes it inside the model.
#pragma once

#include "blocks/forward.h"

namespace membill {

// ForCausalLMLoss over whole logits: fp32 copy, shifted labels, cross entropy. Returns the scalar loss. Allocates to the loss items.
// transformers 5.24 loss/loss_utils.py.
[[nodiscard]] Tensor causal_lm_loss(Forward& f, const Tensor& logits, const Tensor& labels);

}  // namespace membill
