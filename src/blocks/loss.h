// The loss of a causal language model as Transformers computes it inside the model.
#pragma once

#include "blocks/forward.h"

namespace membill {

// ForCausalLMLoss over whole logits: fp32 copy, shifted labels, cross entropy. Returns the scalar loss. Allocates to the loss items.
// transformers 5.24 loss/loss_utils.py. Of releases before 4.46 (plan.software) the model's forward: there `logits` become fp32, and
// the shifted ones are a copy.
[[nodiscard]] Tensor causal_lm_loss(Forward& f, Tensor& logits, const Tensor& labels);

// Chunks of plan.loss_chunk rows in a micro-batch. REQUIRES: plan.loss_chunk > 0.
[[nodiscard]] std::int64_t loss_chunks(const Forward& f);
// whole.chunk(count, dim=1): views of one node, whose gradient is one tensor, called `gradient`.
[[nodiscard]] std::vector<Tensor> chunks_of(Forward& f, const Tensor& whole, std::int64_t count, const char* gradient);

// Head and cross entropy in one kernel without logits (cut_cross_entropy).
[[nodiscard]] Tensor cut_loss(Forward& f, Parameter& head, const Tensor& hidden);

// nll_loss over log-probabilities, summed or averaged to a scalar; its gradient is a zero-filled tensor as large as they are.
[[nodiscard]] Tensor negative_log_likelihood(Forward& f, const Tensor& log_probabilities, const Tensor& targets);

// CrossEntropyLoss over logits as they are, nothing shifted (masked words, sequence to sequence, classifiers): the log-softmax stays in
// their type, the loss is in fp32 under autocast.
[[nodiscard]] Tensor plain_loss(Forward& f, const Tensor& logits, const Tensor& labels);

// The fp32 copy without each sequence's last position that the model's forward made in transformers before 4.46
// (modeling_llama.py of 4.45); `logits` are in fp32 from then on.
[[nodiscard]] Tensor shifted_in_model(Forward& f, Tensor& logits);

// logits[..., :-1, :].contiguous(): of one row the view is contiguous as it is.
[[nodiscard]] Tensor contiguous_without_last(Forward& f, const Tensor& logits, const Shape& shape);

}  // namespace membill
