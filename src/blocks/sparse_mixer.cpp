#include "blocks/sparse_mixer.h"

#include "blocks/layers.h"

namespace membill {
namespace {

struct Choice {
  Tensor weight, expert;
};

// Which scores are too far below the best one.
Tensor far_below(Forward& f, const Tensor& scores) {
  Recorder& r = f.r;
  const bool grad = r.grad_enabled();
  r.set_grad_enabled(false);
  const Tensor factor = r.mul_scalar(r.mul_scalar(scores, "magnitude of scores"), "magnitude, clamped");
  const Tensor distance = r.mul_scalar(r.mul_scalar(scores, "distance from the best"), "relative distance");
  r.set_grad_enabled(grad);
  return r.empty(scores.shape(), DType::boolean, "scores far below the best");
}

// max() of the scores less a sample of Gumbel's distribution.
Tensor sample_expert(Forward& f, const Tensor& gates) {
  Recorder& r = f.r;
  const Tensor noise = r.mul_scalar(r.empty(gates.shape(), gates.dtype(), "samples"), "logarithm of samples");
  const Tensor noisy = r.mul_scalar(gates, "noisy scores");
  return r.empty({gates.rows(), Size(1)}, DType::int64, "chosen expert");
}

// PhimoeMultiplier, a torch.autograd.Function: no gradient goes through the softmax.
Tensor multiplier(Forward& f, const Tensor& scores, const Tensor& weight, const Tensor& expert, const Tensor& gates) {
  Recorder& r = f.r;
  const bool node = r.needs_node({&scores});
  const Tensor kept_weight = node ? r.saved(weight) : Tensor(), kept_expert = node ? r.saved(expert) : Tensor();
  const Tensor kept_gates = node ? r.detach(r.saved(gates)) : Tensor();
  Tensor out = r.empty(weight.shape(), weight.dtype(), "weight of an expert");
  if (node)
    r.record({&out}, {r.edge(scores)},
             [kept_weight, kept_expert, kept_gates, type = scores.dtype()](Recorder& rec, Gradients&) {
               const Tensor scaled = rec.empty(kept_weight.shape(), kept_weight.dtype(), "scaled gradient");
               Tensor spread = rec.empty(kept_gates.shape(), kept_gates.dtype(), "gradient of the scores");
               return Gradients{rec.cast(std::move(spread), type)};
             });
  return out;
}

// One expert of each token from `candidates`, weighed for `scores`.
Choice choose(Forward& f, const Tensor& candidates, const Tensor& scores) {
  Recorder& r = f.r;
  Tensor gates = r.masked_fill(candidates, far_below(f, candidates), "scores near the best");
  Choice choice;
  choice.expert = sample_expert(f, gates);
  gates = r.softmax(gates, std::nullopt);
  const Tensor weight = r.gather(gates, choice.expert);
  const Tensor factor = r.empty(weight.shape(), weight.dtype(), "factor of the weight");
  choice.weight = multiplier(f, scores, weight, choice.expert, gates);
  return choice;
}

}  // namespace

Routing route_by_sampling(Forward& f, const LayerContext& layer, Module& router, const Tensor& hidden) {
  Recorder& r = f.r;
  Routing routing;
  routing.logits = apply_linear(f, router, hidden);
  const Shape pair{f.dims.N, layer.dims.top};
  const Choice first = choose(f, routing.logits, routing.logits);
  const Tensor others = r.masked_fill(routing.logits, first.expert, "scores of the other experts");
  const Choice second = choose(f, others, routing.logits);
  routing.weights = r.concatenate(first.weight, second.weight, pair);
  routing.indices = r.empty(pair, DType::int64, "chosen experts");
  return routing;
}

}  // namespace membill
