// Multi-head latent attention in Megatron's layers (megatron-core 0.16 transformer/multi_latent_attention.py). The down projections
// are whole on every tensor-parallel rank, as Transformer Engine's layers have them.
#pragma once

#include <vector>

#include "blocks/forward.h"
#include "program/discarded.h"

namespace membill {

[[nodiscard]] bool has_latent_attention(const ModelSpec& model);

// Queries, keys and values of this rank's heads. Selective recompute of mla_up_proj lets go of them: `projected`.
[[nodiscard]] std::vector<Tensor> latent_parts(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                               DiscardedResults& projected);

// A flash kernel whose values are narrower than its keys: keeps its inputs, its output and one fp32 statistic a row and head.
[[nodiscard]] Tensor latent_flash(Forward& f, const KindDims& dims, const std::vector<Tensor>& parts);

}  // namespace membill
