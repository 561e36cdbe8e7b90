// Megatron's mixture of experts (megatron-core 0.16 transformer/moe): top-k router, all-to-all or all-gather dispatcher, experts in turn or
// grouped, shared experts. Tokens are taken to be spread evenly, times plan.imbalance on this rank.
#pragma once

#include "blocks/forward.h"

namespace membill {

// The MoE layer on rows of the stream.
[[nodiscard]] Tensor megatron_moe(Forward& f, const LayerContext& layer, const Tensor& hidden);

}  // namespace membill
