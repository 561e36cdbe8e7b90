// Mixtures of experts as Transformers 5.24 runs them by default: rows gathered by expert, one grouped product for all experts
// (integrations/moe.py grouped_mm_experts_forward).
#pragma once

#include <string>

#include "blocks/forward.h"

namespace membill {

// What a router chose: `weights` and `indices` have one row a token, one column an expert of that token.
struct Routing {
  Tensor logits, weights, indices;
};

// softmax in fp32 over the experts, the best ones kept. `explicit_type`: softmax(..., dtype=float) instead of .float() before it;
// `normalise`: weights divided by their sum; `back`: weights in the logits' type.
struct RouterShape {
  bool explicit_type = false;
  bool normalise = true;
  bool back = false;
};
[[nodiscard]] Routing route(Forward& f, const LayerContext& layer, Module& router, const RouterShape& shape,
                            const Tensor& hidden);
// granitemoe: the best logits first, a softmax over them.
[[nodiscard]] Routing route_by_logits(Forward& f, const LayerContext& layer, Module& router, const Tensor& hidden);

// The fused experts called `prefix` ("mlp.experts."): rows as `hidden`.
[[nodiscard]] Tensor run_experts(Forward& f, const LayerContext& layer, const std::string& prefix, const Tensor& hidden,
                                 const Routing& routing);

}  // namespace membill
