// Norms of Megatron's layers.
#pragma once

#include "blocks/forward.h"

namespace membill {

// torch.nn.LayerNorm where it has a bias, else torch.nn.RMSNorm's fused kernel: keeps its input and one fp32 statistic a row
// (torch 2.15 native/cuda/layer_norm_kernel.cu).
[[nodiscard]] Tensor megatron_norm(Forward& f, Module& module, const Tensor& x);

}  // namespace membill
