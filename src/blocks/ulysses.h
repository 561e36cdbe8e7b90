// Ulysses: each rank gives away the heads of its tokens and gets the tokens of its heads, before the kernel and, backwards, after it.
#pragma once

#include "blocks/attention.h"

namespace membill {

[[nodiscard]] Tensor ulysses_attention(Forward& f, const AttentionCall& call, const Tensor& q, const Tensor& k,
                                       const Tensor& v);

// ms-swift's loss (4.6 trainers/utils.py per_token_loss_func_sp): of the rank's tokens, outside of the model, in the type of the logits
// that it returns; the losses of single tokens are gathered.
[[nodiscard]] Tensor loss_of_gathered_tokens(Forward& f, const Tensor& logits);

}  // namespace membill
