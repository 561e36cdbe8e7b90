// The transformer layer of Megatron-LM as Korthikanti et al. 2022 ("Reducing Activation Recomputation in Large Transformer
// Models") count it: biases, GELU, dropout, a fused scale-mask-softmax, 16-bit activations.
#pragma once

#include "program/recorder.h"

namespace membill {

// Weights of one layer. Widths: hidden h, MLP 4h.
struct MegatronLayerWeights {
  Parameter input_norm, input_norm_bias, qkv, projection, mlp_norm, mlp_norm_bias, up, down;
};

struct MegatronLayerSizes {
  Size s, b, h, a;  // sequence, micro-batch, hidden, heads (the paper's letters)
};

// One layer on `hidden` (rows s·b, width h). Dropouts always on, as in the paper.
[[nodiscard]] Tensor megatron_layer(Recorder& recorder, const MegatronLayerSizes& sizes, MegatronLayerWeights& weights,
                                    Tensor hidden);

}  // namespace membill
