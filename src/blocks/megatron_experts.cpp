#include "blocks/megatron_experts.h"

#include <string>
#include <vector>

#include "base/engine_keys.h"
#include "blocks/loss.h"
#include "blocks/megatron_mlp.h"
#include "blocks/megatron_parallel.h"
#include "blocks/megatron_router.h"
#include "program/discarded.h"

namespace membill {
namespace {

// A swiglu of both halves times each row's weight (fused_bias_swiglu.py WeightedSwiGLUFunction).
Tensor weighted_activation(Recorder& r, const Tensor& x, const Tensor& weights, const Size& width) {
  const bool node = r.needs_node({&x, &weights});
  const Tensor kept = node ? r.saved(x) : Tensor(), kept_weights = node ? r.saved(weights) : Tensor();
  Tensor out = r.empty({x.rows(), width}, x.dtype(), "weighted activation");
  if (!node) return out;
  r.record({&out}, {r.edge(x), r.edge(weights)},
           [kept, kept_weights, shape = x.shape(), type = x.dtype(), w = weights.shape(),
            weight_type = weights.dtype()](Recorder& rec, Gradients&) {
             Gradients result{rec.empty(shape, type, "gradient of the activation"),
                              rec.empty(w, weight_type, "gradient of the weights")};
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

Module& expert_linear(const LayerContext& layer, std::int64_t expert, const char* linear) {
  return layer.modules.at("mlp.experts.local_experts." + std::to_string(expert) + "." + linear);
}

Tensor run_expert(Forward& f, const LayerContext& layer, std::int64_t expert, const Tensor& rows,
                  const Tensor& weights) {
  const Tensor both = local_linear(f, expert_linear(layer, expert, "linear_fc1"), rows);
  const Tensor active = weighted_activation(f.r, both, weights, layer.dims.expert_width);
  return local_linear(f, expert_linear(layer, expert, "linear_fc2"), active);
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

// The products of all local experts in one call (Transformer Engine's GroupedLinear; the gradients of all weights come together).
Tensor grouped_product(Forward& f, const std::vector<Parameter*>& weights, const char* label, const Tensor& x) {
  Recorder& r = f.r;
  const bool trained = weights.front()->trainable, node = trained || r.needs_node({&x});
  std::vector<Edge> edges{r.edge(x)};
  std::vector<Tensor> kept{node && trained ? r.saved(x) : Tensor()};
  for (const Parameter* weight : weights) {
    edges.push_back(r.edge(weight->value));
    kept.push_back(node ? r.saved(weight->value) : Tensor());
  }
  Tensor out = r.empty({x.rows(), weights.front()->value.rows()}, x.dtype(), label);
  if (!r.needs_node({&x, &weights.front()->value})) return out;
  const bool fused = engine_flag(f.plan, "gradient_accumulation_fusion", false);
  r.record({&out}, std::move(edges),
           [kept, shape = x.shape(), type = x.dtype(), makes = trained && !fused, own = r.writer().item("gradients")](
               Recorder& rec, Gradients&) {
             Gradients result(kept.size());
             result[0] = rec.empty(shape, type, "input gradient of the experts");
             for (std::size_t i = 1; i < kept.size() && makes; ++i)
               result[i] = rec.empty(kept[i].shape(), kept[i].dtype(), "weight gradient", own);
             return result;
           });
  return out;
}

Tensor grouped_linear(Forward& f, const LayerContext& layer, const char* linear, const Tensor& x) {
  std::vector<Parameter*> weights, down, up;
  double dropout = 0;
  for (std::int64_t expert = 0; expert < layer.kind.moe->experts; ++expert) {
    Module& module = expert_linear(layer, expert, linear);
    weights.push_back(&module.weight);
    if (module.adapter == nullptr || !f.adapters) continue;
    down.push_back(&module.adapter->down);
    up.push_back(&module.adapter->up);
    dropout = module.adapter->dropout;
  }
  Tensor base = grouped_product(f, weights, linear, x);
  if (down.empty()) return base;
  Tensor narrow = grouped_product(f, down, "adapter output", f.r.dropout(x, dropout));
  return with_adapter_output(f.r, base, grouped_product(f, up, "adapter output", narrow));
}

// experts.py TEGroupedMLP.
Tensor run_experts_together(Forward& f, const LayerContext& layer, const Tensor& rows, const Tensor& weights) {
  const Tensor both = grouped_linear(f, layer, "linear_fc1", rows);
  const auto activate = [&f, width = layer.dims.expert_width](const std::vector<Tensor>& inputs) {
    const ItemScope scope(f.r, f.items.block);
    return std::vector<Tensor>{weighted_activation(f.r, inputs[0], inputs[1], width)};
  };
  DiscardedResults activated;
  const Tensor active = recomputes_module(f.plan, "moe_act")
                            ? activated.run(f.r, {both, weights}, activate).front()
                            : weighted_activation(f.r, both, weights, layer.dims.expert_width);
  return activated.discard(f.r, grouped_linear(f, layer, "linear_fc2", active));
}

Tensor run_experts(Forward& f, const LayerContext& layer, const Tensor& rows, const Tensor& weights) {
  return expert_plan(f.plan).grouped ? run_experts_together(f, layer, rows, weights)
                                     : run_experts_in_turn(f, layer, rows, weights);
}

// Sums over ranks in the router's type.
Tensor reduced(Forward& f, const Tensor& x, const Shape& shape) {
  const DType type = expert_plan(f.plan).wide ? DType::fp32 : x.dtype();
  const Tensor sums = moved(f.r, f.r.cast(x, type), shape, "expert outputs, summed over ranks");
  return f.r.cast(sums, x.dtype());
}

// token_dispatcher.py MoEAlltoAllTokenDispatcher.
Tensor exchange(Forward& f, const LayerContext& layer, const MegatronRouting& routing, const Tensor& hidden,
                const ExpertRows& sizes) {
  Recorder& r = f.r;
  const ParallelPlan& p = f.plan.parallel;
  Permuted sent = permute(f, routing, hidden, sizes.sent);
  const Tensor sent_rows = sent.rows;  // a variable of the layer's forward, as are the rows that came
  Tensor rows = std::move(sent.rows), weights = std::move(sent.weights);
  const auto pass = [&](const Size& count, const char* label) {
    rows = moved(r, rows, {count, hidden.width()}, label);
    weights = moved(r, weights, {count, Size(1)}, label);
  };
  if (p.ep > 1) pass(sizes.received, "rows from the expert-parallel ranks");
  const Tensor came = rows;
  if (p.expert_tp > 1) pass(sizes.worked, "rows of the expert-tensor-parallel ranks");
  const bool sorts = layer.kind.moe->experts > 1;
  if (sorts) pass(sizes.worked, "rows sorted by local expert");
  Tensor out = run_experts(f, layer, rows, weights);
  {
    const Tensor of_experts = out;
    if (sorts) out = moved(r, out, out.shape(), "expert outputs as they came");
    if (p.expert_tp > 1) out = reduced(f, out, {sizes.received, hidden.width()});
  }
  rows.drop();
  weights.drop();
  if (p.ep > 1) out = moved(r, out, {sizes.sent, hidden.width()}, "expert outputs, sent back");
  return moved(r, out, hidden.shape(), "expert outputs added up by token", sent.order);
}

// Rows gathered in the global memory buffer; what is left of their gradient goes there, too.
Tensor gathered_in_buffer(Recorder& r, const Tensor& x, const Shape& shape) {
  Tensor out = r.placeholder(shape, x.dtype());
  if (!r.needs_node({&x})) return out;
  r.record({&out}, {r.edge(x)}, [from = x.shape(), type = x.dtype()](Recorder& rec, Gradients&) {
    return Gradients{rec.placeholder(from, type)};
  });
  return out;
}

// token_dispatcher.py MoEAllGatherTokenDispatcher.
Tensor gather(Forward& f, const LayerContext& layer, MegatronRouting routing, Tensor hidden, const ExpertRows& sizes) {
  Recorder& r = f.r;
  const Shape own = hidden.shape(), seen{sizes.seen, hidden.width()};
  const Size local(layer.kind.moe->experts), all = routing.map.width();
  const bool several = f.plan.parallel.ep * f.plan.parallel.expert_tp > 1;
  if (several) {
    routing.map = r.empty({sizes.seen, all}, DType::boolean, "routing map of all ranks");
    routing.weights = moved(r, routing.weights, {sizes.seen, all}, "routing weights of all ranks");
    hidden = gathered_in_buffer(r, hidden, seen);
  }
  if (f.plan.parallel.ep > 1) {
    routing.map = r.empty({sizes.seen, local}, DType::boolean, "routing map of the local experts");
    routing.weights = moved(r, routing.weights, {sizes.seen, local}, "routing weights of the local experts");
  }
  Permuted taken = permute(f, routing, hidden, sizes.worked);
  hidden.drop();
  Tensor out = run_experts(f, layer, taken.rows, taken.weights);
  out = moved(r, out, seen, "expert outputs added up by token", taken.order);
  taken.rows.drop();
  return several ? reduced(f, out, own) : out;
}

// shared_experts.py SharedExpertMLP.
Tensor run_shared_experts(Forward& f, const LayerContext& layer, Module& first, const Tensor& hidden) {
  Tensor out =
      megatron_mlp(f, first, layer.modules.at("mlp.shared_experts.linear_fc2"), layer.dims.shared_width, hidden);
  Module* gate = layer.modules.find("mlp.shared_experts.gate");
  if (gate == nullptr) return out;
  const Tensor score = f.r.sigmoid(f.r.linear(hidden, gate->weight));
  return f.r.mul(std::move(out), score, "gated output of the shared experts");
}

}  // namespace

Tensor megatron_moe(Forward& f, const LayerContext& layer, const Tensor& hidden) {
  Module* shared = layer.modules.find("mlp.shared_experts.linear_fc1");
  const auto run_shared = [&f, layer, shared](const Tensor& x) {
    const ItemScope scope(f.r, f.items.block);
    return run_shared_experts(f, layer, *shared, x);
  };
  Tensor beside;
  if (shared != nullptr)
    beside = recomputes_module(f.plan, "shared_experts") ? f.r.checkpoint(hidden, {.reentrant = true}, run_shared)
                                                         : run_shared(hidden);
  const MegatronRouting routing = megatron_route(f, layer, hidden);
  const ExpertRows sizes = expert_rows(f, layer.dims.top, layer.kind.moe->experts * f.plan.parallel.ep);
  Tensor out = expert_plan(f.plan).gathers ? gather(f, layer, routing, hidden, sizes)
                                           : exchange(f, layer, routing, hidden, sizes);
  return beside.defined() ? f.r.add(std::move(out), beside, "routed and shared experts") : out;
}

}  // namespace membill
