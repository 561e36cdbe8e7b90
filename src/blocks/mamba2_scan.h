// The state space scan of mamba's second version, chunk by chunk, in PyTorch's operators (transformers 5.24
// models/granitemoehybrid/modeling_granitemoehybrid.py mamba2_chunk_scan; falcon_h1's and nemotron_h's are the same).
#pragma once

#include "blocks/forward.h"

namespace membill {

// Rows of heads (x: b·s·heads, width), of groups (input, output: b·s·groups, state), time steps (b·s, heads), and the decay of each
// head.
struct Mamba2Inputs {
  Tensor x, time_step, decay, input, output;
};
// Of tokens and heads, in fp32.
[[nodiscard]] Tensor mamba2_scan(Forward& f, const LayerContext& layer, Mamba2Inputs inputs, Module& skip,
                                 Module& time_bias);

}  // namespace membill
