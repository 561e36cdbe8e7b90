// Megatron's MLP with fused activations (megatron-core 0.16 transformer/mlp.py, fusions/fused_bias_swiglu.py, fused_bias_gelu.py).
#pragma once

#include "blocks/forward.h"

namespace membill {

// The gradient of a bias of the last axis.
[[nodiscard]] Tensor bias_gradient(Recorder& r, const Shape& bias, DType type, const Size& rows, ItemId own);

// linear_fc1, activation, linear_fc2 without its bias: rows of the stream to rows of the stream.
[[nodiscard]] Tensor megatron_mlp(Forward& f, Module& first, Module& second, const Size& width, const Tensor& x);

}  // namespace membill
