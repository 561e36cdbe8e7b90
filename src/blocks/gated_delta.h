// Gated DeltaNet (qwen3_next, qwen3_5) in PyTorch's operators: what Transformers 5.24 runs where flash-linear-attention and
// causal_conv1d are not installed (models/qwen3_next/modeling_qwen3_next.py, models/qwen3_5/modeling_qwen3_5.py).
#pragma once

#include "blocks/forward.h"

namespace membill {

// linear_attn(hidden), with the fused projections of qwen3_next or the four of qwen3_5, as the census has them.
[[nodiscard]] Tensor gated_delta_net(Forward& f, const LayerContext& layer, const Tensor& hidden);

}  // namespace membill
