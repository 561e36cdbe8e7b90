// What the decoders with LayerNorm share: norms, plain MLPs, activations written in Python, positions, partly rotated heads.
#pragma once

#include <string>
#include <utility>

#include "blocks/attention.h"
#include "blocks/forward.h"

namespace membill {

// torch.nn.LayerNorm.
[[nodiscard]] Tensor layer_norm(Forward& f, Module& module, Tensor x);

// down(act(up(x))) with the module names `up` and `down`.
struct PlainMlp {
  std::string up, down, activation;
};
[[nodiscard]] Tensor plain_mlp(Forward& f, Modules& modules, const PlainMlp& names, const Tensor& x);

// NewGELUActivation: gelu's tanh form, operator by operator.
[[nodiscard]] Tensor gelu_new(Forward& f, const Tensor& x);

// torch.arange(s), one row for the whole batch.
[[nodiscard]] Tensor position_ids(Forward& f);

// Position ids, masks, and rotary tables of `rotary` columns in the type of `hidden`.
[[nodiscard]] LayerInputs rotary_inputs(Forward& f, const Size& rotary, const Tensor& hidden);

// Queries and keys whose first columns are rotated; the rest is concatenated behind. Results lie as (b, heads, s, d).
[[nodiscard]] std::pair<Tensor, Tensor> rotate_partly(Forward& f, const Tensor& q, const Tensor& k,
                                                      const LayerInputs& inputs);

}  // namespace membill
