#include "blocks/megatron_router.h"

#include <algorithm>
#include <cmath>

#include "base/engine_keys.h"
#include "blocks/kept.h"
#include "blocks/megatron_next_token.h"
#include "blocks/megatron_parallel.h"

namespace membill {
namespace {

constexpr std::int64_t kParts = 1000;

std::int64_t in_parts(double value) { return static_cast<std::int64_t>(std::ceil(value * kParts)); }

Size share(const Forward& f, const Size& rows, std::int64_t parts) {
  return parts == kParts ? rows : f.r.symbols().ceil_div(rows * Size(parts), Size(kParts));
}

// RouterGatingLinearFunction with moe_router_dtype fp32: both factors are cast at each use.
Tensor gate_in_fp32(Recorder& r, Parameter& router, const Tensor& hidden) {
  const bool node = r.needs_node({&hidden, &router.value});
  const Tensor kept = node ? r.saved(hidden) : Tensor(), kept_weight = node ? r.saved(router.value) : Tensor();
  Tensor out;
  {
    const Tensor x = r.empty(hidden.shape(), DType::fp32, "router input in fp32");
    const Tensor w = r.empty(router.value.shape(), DType::fp32, "router in fp32");
    out = r.empty({hidden.rows(), router.value.rows()}, DType::fp32, "router logits");
  }
  if (!node) return out;
  r.record({&out}, {r.edge(hidden), r.edge(router.value)},
           [kept, kept_weight, type = hidden.dtype(), own = r.writer().item("gradients")](Recorder& rec, Gradients&) {
             const Shape &x = kept.shape(), &w = kept_weight.shape();
             Gradients result(2);
             {
               const Tensor wide = rec.empty(x, DType::fp32, "router input gradient in fp32");
               result[0] = rec.empty(x, type, "router input gradient");
             }
             const Tensor again = rec.empty(x, DType::fp32, "router input in fp32");
             const Tensor wide = rec.empty(w, DType::fp32, "router gradient in fp32");
             result[1] = rec.empty(w, type, "router gradient", own);
             return result;
           });
  return out;
}

// x / (x.sum(-1, keepdim=True) + epsilon)
Tensor divided_by_sum(Recorder& r, const Tensor& x) {
  const Tensor sum = r.add_scalar(r.sum_of_rows(x));
  Tensor out = r.empty(x.shape(), x.dtype(), "scores by their sum");
  if (!r.needs_node({&x})) return out;
  const Tensor kept = r.saved(x), kept_sum = r.saved(sum);
  r.record({&out}, {r.edge(x), r.edge(sum)}, [kept, kept_sum](Recorder& rec, Gradients&) {
    Gradients result(2);
    {
      const Tensor once = rec.empty(kept.shape(), kept.dtype(), "quotient");
      const Tensor twice = rec.empty(kept.shape(), kept.dtype(), "quotient again");
      result[1] = rec.empty(kept_sum.shape(), kept.dtype(), "gradient of a divisor");
    }
    result[0] = rec.empty(kept.shape(), kept.dtype(), "gradient of a quotient");
    return result;
  });
  return out;
}

// The weights of each token's choice, and who was chosen.
struct Choice {
  Tensor weights, experts;
};

Choice choose_by_softmax(Recorder& r, const Tensor& logits, const Size& top) {
  const auto [values, indices] = r.top_of_rows(logits, top);
  return {r.cast(r.softmax(values, DType::fp32), logits.dtype()), indices};
}

// A bias in fp32 steers the choice, among groups of experts first (group_limited_topk), and has no part in the weights.
Choice choose_by_sigmoid(Recorder& r, const Tensor& logits, const Size& top) {
  const Tensor scores = r.cast(r.sigmoid(r.cast(logits, DType::fp32)), logits.dtype());
  Choice choice;
  {
    const Tensor steered = r.empty(scores.shape(), DType::fp32, "scores with the experts' bias");
    const Tensor limited = r.empty(scores.shape(), DType::fp32, "scores within the chosen groups");
    choice.experts = r.top_of_rows(limited, top)[1];
  }
  choice.weights = divided_by_sum(r, r.gather(scores, choice.experts));
  choice.weights = r.mul_scalar(choice.weights, "scaled weights of experts");
  return choice;
}

// compute_routing_scores_for_aux_loss, switch_load_balancing_loss_func: the loss hangs on the weights. Not in a forward without gradients.
Tensor with_balancing_loss(Recorder& r, Tensor weights, const Tensor& logits, bool by_sigmoid) {
  if (!r.grad_enabled()) return weights;
  const Tensor scores = by_sigmoid ? divided_by_sum(r, r.sigmoid(logits)) : r.softmax(logits, DType::fp32);
  Tensor out = r.view(r.detach(weights), weights.shape());
  if (!r.needs_node({&weights})) return out;
  r.record({&out}, {r.edge(weights), r.edge(scores)},
           [shape = scores.shape(), type = scores.dtype()](Recorder& rec, Gradients& g) {
             const Tensor of_experts = rec.empty({Size(1), shape.width}, type, "gradient of the balancing loss");
             return Gradients{std::move(g[0]), rec.view(of_experts, shape)};
           });
  return out;
}

// routing_probs * final_map: what exceeds the capacity is dropped.
Tensor dropped_beyond_capacity(Recorder& r, const Tensor& weights, const Tensor& map, bool keeps_map) {
  Tensor out = r.empty(weights.shape(), weights.dtype(), "routing weights within the capacity");
  if (!r.needs_node({&weights})) return out;
  const Tensor kept = keeps_map ? r.saved(map) : Tensor();
  r.record({&out}, {r.edge(weights)},
           [kept, shape = weights.shape(), type = weights.dtype()](Recorder& rec, Gradients&) {
             return Gradients{rec.empty(shape, type, "gradient of the routing weights")};
           });
  return out;
}

// x.masked_select(mask), which saves both.
Tensor masked_select(Recorder& r, const Tensor& x, const Tensor& mask, const Size& rows) {
  Tensor out = r.empty({rows, Size(1)}, x.dtype(), "weight of each row");
  if (!r.needs_node({&x})) return out;
  const Tensor kept = r.saved(x), kept_mask = r.saved(mask);
  r.record({&out}, {r.edge(x)}, [kept, kept_mask](Recorder& rec, Gradients&) {
    return Gradients{rec.empty(kept.shape(), kept.dtype(), "gradient of the routing weights")};
  });
  return out;
}

// Whether a layer's map and order of rows belong to its dispatcher alone: the graphs of other micro-batches hold none.
bool holds_one_order(const TrainingPlan& plan) {
  const CheckpointPlan& c = plan.checkpointing;
  const bool again =
      c.mode == Checkpointing::full || std::find(c.selective.begin(), c.selective.end(), "moe") != c.selective.end();
  return again || plan.parallel.pp == 1;
}

}  // namespace

bool scores_by_sigmoid(const ModelSpec& model) {
  return model.model_type == "deepseek_v3" || model.model_type == "glm4_moe";
}

ExpertPlan expert_plan(const TrainingPlan& plan) {
  ExpertPlan experts;
  experts.gathers = engine_word(plan, "moe_token_dispatcher_type", "alltoall") == "allgather";
  experts.grouped = engine_flag(plan, "moe_grouped_gemm", false);
  experts.pads = engine_flag(plan, "moe_pad_expert_input_to_capacity", false);
  experts.balances = engine_word(plan, "moe_router_load_balancing_type", "none") != "none";
  experts.wide = engine_word(plan, "moe_router_dtype", "") == "fp32";
  experts.capacity = in_parts(engine_number(plan, "moe_expert_capacity_factor", 0));
  return experts;
}

ExpertRows expert_rows(const Forward& f, const Size& top, std::int64_t experts) {
  const ExpertPlan plan = expert_plan(f.plan);
  const ParallelPlan& p = f.plan.parallel;
  ExpertRows rows;
  rows.tokens = stream_rows(f);
  const Size chosen = rows.tokens * top;
  rows.sent = plan.capacity > 0 ? share(f, chosen, std::min(plan.capacity, kParts)) : chosen;
  if (plan.pads)
    rows.sent = Size(experts) * f.r.symbols().ceil_div(chosen * Size(plan.capacity), Size(experts * kParts));
  std::int64_t fullest = p.ep > 1 ? in_parts(f.plan.imbalance) : kParts;
  if (plan.capacity > 0) fullest = std::min(fullest, std::max(plan.capacity, kParts));
  rows.received = plan.pads ? rows.sent : share(f, rows.sent, fullest);
  rows.worked = rows.received * Size(p.expert_tp);
  rows.seen = plan.gathers ? rows.tokens * Size(p.ep * p.expert_tp) : rows.tokens;
  return rows;
}

MegatronRouting megatron_route(Forward& f, const LayerContext& layer, const Tensor& hidden) {
  Recorder& r = f.r;
  const ExpertPlan plan = expert_plan(f.plan);
  Module& module = layer.modules.at("mlp.router");
  Parameter& router = module.weight;
  Tensor logits = plan.wide ? gate_in_fp32(r, router, hidden) : r.linear(hidden, router);
  if (!plan.wide && !router.trainable) logits = also_keeping(r, logits, hidden);  // RouterGatingLinearFunction
  const bool by_sigmoid = scores_by_sigmoid(f.model);
  MegatronRouting routing;
  {
    const Choice choice =
        by_sigmoid ? choose_by_sigmoid(r, logits, layer.dims.top) : choose_by_softmax(r, logits, layer.dims.top);
    routing.weights = moved(r, choice.weights, logits.shape(), "routing weights of all experts", choice.experts);
  }
  routing.map = r.empty(logits.shape(), DType::int32, "routing map in 32 bits");
  routing.map = r.empty(logits.shape(), DType::boolean, "routing map");
  if (plan.capacity > 0)
    routing.weights = dropped_beyond_capacity(r, routing.weights, routing.map, !holds_one_order(f.plan));
  if (plan.balances) routing.weights = with_balancing_loss(r, std::move(routing.weights), logits, by_sigmoid);
  module.remains.clear();
  return routing;
}

Tensor moved(Recorder& r, const Tensor& x, const Shape& shape, const char* label, const Tensor& index) {
  Tensor out = r.empty(shape, x.dtype(), label);
  if (!r.needs_node({&x})) return out;
  const Tensor kept = index.defined() ? r.saved(index) : Tensor();
  r.record({&out}, {r.edge(x)}, [kept, from = x.shape(), type = x.dtype(), label](Recorder& rec, Gradients&) {
    return Gradients{rec.empty(from, type, label)};
  });
  return out;
}

CheckpointEnd held_by_routers(const std::vector<Modules*>& layers) {
  std::vector<Module*> routers;
  for (Modules* layer : layers)
    if (Module* router = layer->find("mlp.router")) routers.push_back(router);
  if (routers.empty()) return {};
  return [routers = std::move(routers)](const Tensor& input, const Tensor& gradient) {
    for (Module* router : routers) router->remains = {input, gradient};
  };
}

void leave_leaf(const Forward& f, ModelModules& modules, bool last, std::unique_ptr<Parameter>& leaf,
                std::unique_ptr<Parameter>& left) {
  if (f.plan.engine != Engine::megatron || f.plan.method != Method::lora) return;
  const CheckpointPlan& c = f.plan.checkpointing;
  const bool moe = std::find(c.selective.begin(), c.selective.end(), "moe") != c.selective.end();
  const bool ends_at_checkpoint = c.mode == Checkpointing::full || moe;
  for (UnitModules& unit : modules.units)
    for (Modules& layer : unit.layers)
      if (Module* router = layer.find("mlp.router"); router != nullptr && !ends_at_checkpoint)
        router->remains = {leaf->value, leaf->gradient};
  if (!last) left = std::move(leaf);
}

Permuted permute(Forward& f, const MegatronRouting& routing, const Tensor& hidden, const Size& rows) {
  Recorder& r = f.r;
  const Shape one{rows, Size(1)};
  const Tensor by_expert = r.empty(routing.map.shape(), DType::boolean, "routing map by expert");
  Permuted out;
  out.order =
      holds_one_order(f.plan) ? r.placeholder(one, DType::int64) : r.empty(one, DType::int64, "token of each row");
  const Tensor turned = r.contiguous_copy(routing.weights, routing.weights.shape(), "routing weights by expert");
  out.weights = expert_plan(f.plan).pads
                    ? moved(r, turned, one, "weight of each row", r.empty(one, DType::int64, "place of each weight"))
                    : masked_select(r, turned, by_expert, rows);
  out.rows = moved(r, hidden, {rows, hidden.width()}, "rows by expert", out.order);
  return out;
}

namespace {

std::vector<std::int32_t> kinds_of_layers(const Section& section) {
  return is_next_token_part(section) ? std::vector<std::int32_t>{0} : section.layer_kinds;
}

}  // namespace

std::vector<Tensor> dispatcher_attributes(Forward& f) {
  Recorder& r = f.r;
  const ExpertPlan plan = expert_plan(f.plan);
  std::vector<Tensor> kept;
  const auto keep = [&](const Shape& shape, DType type, const char* label) {
    kept.push_back(r.empty(shape, type, label, r.writer().item("buffers.routing")));
  };
  const DType type = plan.wide ? DType::fp32 : f.stream;
  for (std::size_t section = 0; section < f.model.sections.size(); ++section)
    for (const std::int32_t index : kinds_of_layers(f.model.sections[section])) {
      const auto at = static_cast<std::size_t>(index);
      const LayerKind& kind = f.model.sections[section].kinds[at];
      if (!kind.moe) continue;
      const std::int64_t local = kind.moe->experts, all = local * f.plan.parallel.ep;
      const ExpertRows rows = expert_rows(f, f.dims.kinds[section][at].top, all);
      if (!plan.gathers) keep({rows.tokens, Size(all)}, type, "routing weights of all experts");
      keep({rows.seen, Size(plan.gathers ? local : all)}, DType::boolean, "routing map");
      if (holds_one_order(f.plan))
        keep({plan.gathers ? rows.worked : rows.sent, Size(1)}, DType::int64, "token of each row");
    }
  return kept;
}

}  // namespace membill
