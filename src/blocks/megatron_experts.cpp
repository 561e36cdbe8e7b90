#include "blocks/megatron_experts.h"

#include <cmath>
#include <string>
#include <vector>

#include "blocks/loss.h"
#include "blocks/megatron_parallel.h"

namespace membill {
namespace {

// Rows of x in another place or order: a new tensor, and so is its gradient. `index`: what says where each goes.
Tensor moved(Recorder& r, const Tensor& x, const Shape& shape, const char* label, const Tensor& index = {}) {
  Tensor out = r.empty(shape, x.dtype(), label);
  if (!r.needs_node({&x})) return out;
  const Tensor kept = index.defined() ? r.saved(index) : Tensor();
  r.record({&out}, {r.edge(x)}, [kept, from = x.shape(), type = x.dtype(), label](Recorder& rec, Gradients&) {
    return Gradients{rec.empty(from, type, label)};
  });
  return out;
}

// Tokens in the order of their experts, one row for each choice, and the weight of each.
struct Dispatched {
  Tensor rows, weights, order;
};

// router.py TopKRouter, moe_utils.py topk_routing_with_score_function, permute.
Dispatched route_and_permute(Forward& f, const LayerContext& layer, const Tensor& hidden) {
  Recorder& r = f.r;
  Parameter& router = layer.modules.at("mlp.router").weight;
  const Size chosen = hidden.rows() * layer.dims.top;
  const Tensor logits = r.linear(hidden, router);
  const auto [values, indices] = r.top_of_rows(logits, layer.dims.top);
  const Tensor probabilities = r.cast(r.softmax(values, DType::fp32), hidden.dtype());
  const Tensor spread = moved(r, probabilities, logits.shape(), "routing weights of all experts", indices);
  Tensor map = r.empty(logits.shape(), DType::int32, "routing map in 32 bits");
  map = r.empty(logits.shape(), DType::boolean, "routing map");
  const Tensor by_expert = r.empty(logits.shape(), DType::boolean, "routing map by expert");
  const Tensor order = r.empty({chosen, Size(1)}, DType::int64, "token of each row");
  const Tensor turned = r.contiguous_copy(spread, spread.shape(), "routing weights by expert");
  Dispatched out;
  out.weights = moved(r, turned, {chosen, Size(1)}, "weight of each row", by_expert);
  out.rows = moved(r, hidden, {chosen, hidden.width()}, "rows by expert", order);
  out.order = order;
  return out;
}

// A swiglu of both halves times each row's weight (fused_bias_swiglu.py WeightedSwiGLUFunction).
Tensor weighted_activation(Recorder& r, const Tensor& x, const Tensor& weights, const Size& width) {
  const bool node = r.needs_node({&x, &weights});
  const Tensor kept = node ? r.saved(x) : Tensor(), kept_weights = node ? r.saved(weights) : Tensor();
  Tensor out = r.empty({x.rows(), width}, x.dtype(), "weighted activation");
  if (!node) return out;
  r.record({&out}, {r.edge(x), r.edge(weights)},
           [kept, kept_weights, shape = x.shape(), type = x.dtype(), w = weights.shape(),
            weight_type = weights.dtype()](Recorder& rec, Gradients& g) {
             Gradients result{rec.empty(shape, type, "gradient of the activation"),
                              rec.empty(w, weight_type, "gradient of the weights")};
             g[0].drop();
             return result;
           });
  return out;
}

// torch.cat; the gradients are views.
Tensor joined(Recorder& r, const std::vector<Tensor>& parts, const Shape& shape) {
  Tensor out = r.empty(shape, parts.front().dtype(), "rows of all experts");
  std::vector<Edge> edges;
  edges.reserve(parts.size());
  for (const Tensor& part : parts) edges.push_back(r.edge(part));
  if (!r.needs_node({&parts.front()})) return out;
  r.record({&out}, std::move(edges), [part = parts.front().shape(), count = parts.size()](Recorder& rec, Gradients& g) {
    Gradients result;
    result.reserve(count);
    for (std::size_t i = 0; i < count; ++i) result.push_back(rec.view(g[0], part));
    return result;
  });
  return out;
}

Tensor run_expert(Forward& f, const LayerContext& layer, std::int64_t expert, const Tensor& rows,
                  const Tensor& weights) {
  const std::string prefix = "mlp.experts.local_experts." + std::to_string(expert) + ".";
  const Tensor both = expert_linear(f, layer.modules.at(prefix + "linear_fc1").weight, rows);
  const Tensor active = weighted_activation(f.r, both, weights, layer.dims.expert_width);
  return expert_linear(f, layer.modules.at(prefix + "linear_fc2").weight, active);
}

// experts.py SequentialMLP.
Tensor run_experts_in_turn(Forward& f, const LayerContext& layer, const Tensor& rows, const Tensor& weights) {
  const std::int64_t count = layer.kind.moe->experts;
  if (count == 1) return run_expert(f, layer, 0, rows, weights);
  constexpr const char* kGradient = "joined gradient of the experts";
  const std::vector<Tensor> tokens = chunks_of(f, rows, count, kGradient),
                            of_tokens = chunks_of(f, weights, count, kGradient);
  std::vector<Tensor> outputs;
  for (std::int64_t expert = 0; expert < count; ++expert) {
    const auto at = static_cast<std::size_t>(expert);
    outputs.push_back(run_expert(f, layer, expert, tokens[at], of_tokens[at]));
  }
  return joined(f.r, outputs, rows.shape());
}

// Rows that reach this rank's experts for each row that it sends.
Size received_rows(Forward& f, const Size& sent) {
  constexpr double kParts = 1000;
  const auto fullest = static_cast<std::int64_t>(std::ceil(f.plan.imbalance * kParts));
  if (fullest == static_cast<std::int64_t>(kParts)) return sent;
  return f.r.symbols().ceil_div(sent * Size(fullest), Size(static_cast<std::int64_t>(kParts)));
}

}  // namespace

Tensor megatron_moe(Forward& f, const LayerContext& layer, const Tensor& hidden) {
  Recorder& r = f.r;
  const ParallelPlan& p = f.plan.parallel;
  Dispatched sent = route_and_permute(f, layer, hidden);
  const Shape of_sent = sent.rows.shape();
  Tensor rows = std::move(sent.rows), weights = std::move(sent.weights);
  const auto pass = [&](const Size& count, const char* label) {
    rows = moved(r, rows, {count, hidden.width()}, label);
    weights = moved(r, weights, {count, Size(1)}, label);
  };
  const Size received = received_rows(f, of_sent.rows), gathered = received * Size(p.expert_tp);
  if (p.ep > 1) pass(received, "rows from the expert-parallel ranks");
  if (p.expert_tp > 1) pass(gathered, "rows of the expert-tensor-parallel ranks");
  const bool sorts = layer.kind.moe->experts > 1;
  if (sorts) pass(gathered, "rows sorted by local expert");
  Tensor out = run_experts_in_turn(f, layer, rows, weights);
  rows.drop();
  weights.drop();
  if (sorts) out = moved(r, out, out.shape(), "expert outputs as they came");
  if (p.expert_tp > 1) out = moved(r, out, {received, hidden.width()}, "expert outputs, summed over ranks");
  if (p.ep > 1) out = moved(r, out, of_sent, "expert outputs, sent back");
  return moved(r, out, hidden.shape(), "expert outputs added up by token", sent.order);
}

}  // namespace membill
