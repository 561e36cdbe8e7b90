// Mixtures of experts as Transformers 5.24 runs them by default: rows gathered by expert, one grouped product for all experts
// (integrations/moe.py grouped_mm_experts_forward).
#pragma once

#include <functional>
#include <string>

#include "blocks/forward.h"

namespace membill {

// What a router chose: `weights` and `indices` have one row a token, one column an expert of that token.
struct Routing {
  Tensor logits, weights, indices;
};

// softmax in fp32 over the experts, the best ones kept. `explicit_type`: softmax(..., dtype=float) instead of .float() before it;
// `normalise`: weights divided by their sum, whatever the config says; `back`: weights in the logits' type.
struct RouterShape {
  bool explicit_type = false;
  bool normalise = true;
  bool back = false;
};
[[nodiscard]] Routing route(Forward& f, const LayerContext& layer, Module& router, const RouterShape& shape,
                            const Tensor& hidden);
// deepseek_v3, glm4_moe, minimax_m2: a sigmoid of each expert; corrected ones choose, the plain ones weigh. `grouped`: logits from
// fp32 operands, groups of experts chosen first, weights scaled (deepseek).
[[nodiscard]] Routing route_by_sigmoid(Forward& f, const LayerContext& layer, Module& router, bool grouped,
                                       const Tensor& hidden);
// deepseek_v2: a softmax over logits from fp32 operands, weights scaled.
[[nodiscard]] Routing route_in_fp32(Forward& f, const LayerContext& layer, Module& router, const Tensor& hidden);
// ernie4_5_moe: a softmax in fp32 whatever autocast says; weights over their sum, in the type of `hidden`.
[[nodiscard]] Routing route_without_autocast(Forward& f, const LayerContext& layer, Module& router,
                                             const Tensor& hidden);
// granitemoe: the best logits first, a softmax over them.
[[nodiscard]] Routing route_by_logits(Forward& f, const LayerContext& layer, Module& router, const Tensor& hidden);

// What the experts of a class do otherwise: `biases` are added to both products; `gate` makes the gated product from the first
// (default: its halves, one through the activation).
struct ExpertShape {
  bool biases = false;
  bool gated = true;  // false: up_proj and an activation in the place of gate_up_proj and its gate
  std::function<Tensor(const Tensor& both)> gate = {};
};
// The fused experts called `prefix` ("mlp.experts."): rows as `hidden`.
[[nodiscard]] Tensor run_experts(Forward& f, const LayerContext& layer, const std::string& prefix, const Tensor& hidden,
                                 const Routing& routing, const ExpertShape& shape = {});

}  // namespace membill
