// Attention kernels as PyTorch and Transformers run them.
#pragma once

#include "blocks/forward.h"

namespace membill {

// The kernel that runs for a layer of `kind`: what torch's scaled_dot_product_attention picks on a card with flash support, or what
// the plan forces. `masked`: a mask tensor is passed; `biased`: one that is more than a padding mask, which flash attention cannot take.
[[nodiscard]] AttentionChoice choose_attention(const Forward& f, const LayerKind& kind, bool masked,
                                               bool biased = false);

// One attention call. q: rows N·a, width d, already rotated; k, v: rows N·k. Returns rows N, width a·d (v's head dimension), as the
// interface functions of transformers do (transposed back and contiguous).
struct AttentionCall {
  const KindDims& dims;
  const AttentionShape& shape;
  AttentionChoice choice;
  Tensor mask;  // additive (eager) or boolean (SDPA) mask of rows b·s, width s, or undefined
  bool query_contiguous =
      false;  // q and k lie as (b, heads, s, d): flash's output then needs a copy, a matrix product none
  bool bare =
      false;  // the kernel is called with fewer key/value heads than query heads, which it expands itself (falcon)
  bool native_softmax = false;  // eager: softmax in the scores' own type (fp32 under autocast)
  bool keeps_softmax = false;   // eager: the softmax's result goes on in its own type (fp32 under autocast)
  bool wide_scores = false;     // eager: queries and keys in fp32 for the scores (gptj)
  bool pads_heads = false;      // flash: copies with wider heads lie as (b, heads, s, d), and so do output and gradient
  bool tokens_first = false;    // flash: tensors lie as (s, b, heads, d), so its backward copies output and gradient
  Tensor* weights = nullptr;    // eager: the attention weights, which the caller receives and holds
  Tensor bias{};  // added to the scores: one of rows heads·s, width s for all rows of the batch; it may be learned
};
[[nodiscard]] Tensor run_attention(Forward& f, const AttentionCall& call, Tensor q, Tensor k, Tensor v);
// The same where the rank has whole sequences.
[[nodiscard]] Tensor run_whole_attention(Forward& f, const AttentionCall& call, Tensor q, Tensor k, Tensor v);

}  // namespace membill
