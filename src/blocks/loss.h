// The loss of a causal language model as Transformers computes it inside the model.
#pragma once

#include "blocks/forward.h"

namespace membill {

// ForCausalLMLoss over whole logits: fp32 copy, shifted labels, cross entropy. Returns the scalar loss. Allocates to the loss items.
// transformers 5.24 loss/loss_utils.py. Of releases before 4.46 (plan.software) the model's forward: there `logits` become fp32, and
// the shifted ones are a copy.
[[nodiscard]] Tensor causal_lm_loss(Forward& f, Tensor& logits, const Tensor& labels);

}  // namespace membill
