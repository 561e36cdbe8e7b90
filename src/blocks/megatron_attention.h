// Rotary positions and the attention core of Megatron's local layers (megatron-core 0.16 models/common/embeddings/rope_utils.py,
// transformer/dot_product_attention.py, fusions/fused_softmax.py).
#pragma once

#include <vector>

#include "blocks/forward.h"

namespace membill {

// _apply_rotary_pos_emb_bshd. x: rows of heads. Cosines and sines are made anew at each call. `interleaved`: even and odd columns are
// put side by side first, as latent attention does.
[[nodiscard]] Tensor megatron_rotary(Forward& f, const Tensor& x, const Size& rotary, bool interleaved = false);

struct CoreAttention {
  const KindDims& dims;
  const LayerKind& kind;
  Tensor mask;  // where the scores are made
};

// True where attention scores are made: eager, fused_softmax.
[[nodiscard]] bool has_scores(const TrainingPlan& plan);

// Attention over {q, k, v}, rows of heads, as plan.attention says: a flash kernel, unfused with fp32 softmax (eager), or with the fused
// scale-mask-softmax kernel. Returns N rows of this rank's heads.
[[nodiscard]] Tensor megatron_core_attention(Forward& f, const CoreAttention& core, const std::vector<Tensor>& parts);

}  // namespace membill
