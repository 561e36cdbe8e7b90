#include "blocks/experts.h"

#include "blocks/layers.h"
#include "blocks/parameter_adapter.h"

namespace membill {
namespace {

// The rows of all tokens in the order of their experts.
struct Dispatch {
  Tensor sorted_experts, order, rows, weights, counted, counts, offsets;
};

Dispatch dispatch(Forward& f, const LayerContext& layer, const Tensor& hidden, const Routing& routing) {
  Recorder& r = f.r;
  const Size pairs = f.dims.N * layer.dims.top;
  const Shape column{pairs, Size(1)}, experts{layer.dims.experts, Size(1)};
  Dispatch d;
  const Tensor weights = r.view(routing.weights, column);
  d.sorted_experts = r.empty(column, DType::int64, "experts, sorted");
  d.order = r.empty(column, DType::int64, "order of the experts");
  { const Tensor before = r.empty(column, DType::int64, "sort: positions"); }
  {
    const Tensor tokens = r.empty(column, DType::int64, "token of each row");
    d.rows = r.index_rows(hidden, tokens, hidden.width());
  }
  d.weights = r.index_rows(weights, d.order, Size(1));
  d.counted = r.empty(column, DType::int32, "experts in 32 bits");
  d.counts = r.empty(experts, DType::int32, "rows of each expert");
  d.offsets = r.empty(experts, DType::int32, "end of each expert's rows");
  return d;
}

// A row of the experts' biases for each row of tokens.
Tensor expert_biases(Forward& f, const LayerContext& layer, Parameter& bias, const Dispatch& d, const Size& width) {
  const Tensor rows = f.r.view(bias.value, {layer.dims.experts, width});
  return f.r.index_rows(rows, d.sorted_experts, width);
}

// The gated product of the halves of `both`.
Tensor gate_halves(Forward& f, const LayerContext& layer, const Tensor& both) {
  const auto [gate, up] = f.r.split_in_two(both, {both.rows(), layer.dims.expert_width});
  return f.r.mul(activation(f, layer.kind.mlp.activation, gate), up, "gated product");
}

// F.linear(hidden.type(float32), weight.type(float32)): autocast caches its copy of a parameter that is fp32 already.
Tensor logits_in_fp32(Forward& f, Module& router, const Tensor& hidden) {
  Recorder& r = f.r;
  AdaptedParameter adapted(f, router);
  Parameter& weight = adapted.get();
  if (weight.value.dtype() == DType::fp32) return r.linear(r.cast(hidden, DType::fp32), weight);
  Parameter wide;
  wide.value = r.cast(weight.value, DType::fp32);
  wide.label = weight.label;
  return r.linear(r.cast(hidden, DType::fp32), wide);
}

// Scores outside of the chosen groups are masked; what chooses the groups is as small as their number.
Tensor within_groups(Forward& f, const LayerContext& layer, Tensor scores) {
  Recorder& r = f.r;
  const Shape groups{f.dims.N, Size(layer.kind.moe->groups)};
  const Tensor of_groups = r.empty(groups, scores.dtype(), "scores of groups");
  const Tensor chosen = r.empty(groups, scores.dtype(), "chosen groups");
  const Tensor spread = r.empty(scores.shape(), scores.dtype(), "chosen groups, each expert");
  Tensor others = r.empty(scores.shape(), DType::boolean, "chosen groups, boolean");
  others = r.empty(scores.shape(), DType::boolean, "other groups, boolean");
  return r.masked_fill(std::move(scores), others, "scores within the chosen groups");
}

}  // namespace

Routing route(Forward& f, const LayerContext& layer, Module& router, const RouterShape& shape, const Tensor& hidden) {
  Recorder& r = f.r;
  Routing routing;
  AdaptedParameter weight(f, router);
  routing.logits = r.linear(hidden, weight.get());
  const Tensor probabilities = shape.explicit_type ? r.softmax(routing.logits, DType::fp32)
                                                   : r.softmax(r.cast(routing.logits, DType::fp32), std::nullopt);
  auto [values, indices] = r.top_of_rows(probabilities, layer.dims.top);
  if (shape.normalise || layer.kind.moe->normalised) values = r.div_in_place(values, r.sum_of_rows(values));
  if (shape.back) values = r.cast(values, routing.logits.dtype());
  routing.weights = std::move(values);
  routing.indices = std::move(indices);
  return routing;
}

Routing route_by_sigmoid(Forward& f, const LayerContext& layer, Module& router, bool grouped, const Tensor& hidden) {
  Recorder& r = f.r;
  Routing routing;
  routing.logits = grouped ? logits_in_fp32(f, router, hidden) : r.linear(hidden, AdaptedParameter(f, router).get());
  const Tensor scores = r.sigmoid(grouped ? routing.logits : r.cast(routing.logits, DType::fp32));
  Tensor corrected = r.add_scalar(scores, "corrected scores");
  if (grouped) corrected = within_groups(f, layer, std::move(corrected));
  routing.indices = r.top_of_rows(corrected, layer.dims.top)[1];
  Tensor weights = r.gather(scores, routing.indices);
  if (!grouped) weights = r.div_in_place(weights, r.sum_of_rows(weights));
  if (grouped && layer.kind.moe->normalised) weights = r.div_in_place(weights, r.add_scalar(r.sum_of_rows(weights)));
  routing.weights = grouped ? r.mul_scalar(weights, "scaled weights of experts") : weights;
  return routing;
}

Routing route_in_fp32(Forward& f, const LayerContext& layer, Module& router, const Tensor& hidden) {
  Recorder& r = f.r;
  Routing routing;
  routing.logits = logits_in_fp32(f, router, hidden);
  const Tensor scores = r.softmax(routing.logits, DType::fp32);
  auto [values, indices] = r.top_of_rows(scores, layer.dims.top);
  routing.weights = r.mul_scalar(values, "scaled weights of experts");
  routing.indices = std::move(indices);
  return routing;
}

Routing route_without_autocast(Forward& f, const LayerContext& layer, Module& router, const Tensor& hidden) {
  Recorder& r = f.r;
  Routing routing;
  r.pause_autocast();
  routing.logits = logits_in_fp32(f, router, hidden);
  const Tensor scores = r.softmax(routing.logits, DType::fp32);
  routing.indices = r.top_of_rows(r.add_scalar(scores, "corrected scores"), layer.dims.top)[1];
  Tensor weights = r.gather(scores, routing.indices);
  weights = r.div_in_place(weights, r.clamp(r.sum_of_rows(weights), Recorder::Bounds::one));
  r.resume_autocast();
  routing.weights = r.cast(weights, hidden.dtype());
  return routing;
}

Routing route_by_logits(Forward& f, const LayerContext& layer, Module& router, const Tensor& hidden) {
  Recorder& r = f.r;
  Routing routing;
  routing.logits = r.cast(r.linear(hidden, AdaptedParameter(f, router).get()), DType::fp32);
  auto [values, indices] = r.top_of_rows(routing.logits, layer.dims.top);
  routing.weights = r.cast(r.softmax(values, std::nullopt), hidden.dtype());
  routing.indices = std::move(indices);
  return routing;
}

Tensor run_experts(Forward& f, const LayerContext& layer, const std::string& prefix, const Tensor& hidden,
                   const Routing& routing, const ExpertShape& shape) {
  Recorder& r = f.r;
  const Size pairs = f.dims.N * layer.dims.top;
  const Shape column{pairs, Size(1)};
  AdaptedParameter down(f, layer.modules.at(prefix + "down_proj")),
      gate_up(f, layer.modules.at(prefix + (shape.gated ? "gate_up_proj" : "up_proj")));
  const Dispatch d = dispatch(f, layer, hidden, routing);
  Tensor biases;
  const auto pick_biases = [&](const std::string& name, const Size& width) {
    if (shape.biases) biases = expert_biases(f, layer, layer.modules.at(prefix + name).weight, d, width);
  };
  const Size both = shape.gated ? Size(2) * layer.dims.expert_width : layer.dims.expert_width;
  pick_biases("gate_up_proj_bias", both);
  Tensor out = r.grouped_linear(d.rows, gate_up.get(), d.offsets, both);
  if (shape.biases) out = r.add_in_place(std::move(out), biases);
  if (shape.gated)
    out = shape.gate ? shape.gate(out) : gate_halves(f, layer, out);
  else
    out = activation(f, layer.kind.mlp.activation, std::move(out));
  pick_biases("down_proj_bias", hidden.width());
  out = r.grouped_linear(out, down.get(), d.offsets, hidden.width());
  if (shape.biases) out = r.add_in_place(std::move(out), biases);
  Tensor weighted = r.mul(out, d.weights, "weighted expert outputs");
  const Tensor inverse = r.empty(column, DType::int64, "inverse order");
  { const Tensor positions = r.empty(column, DType::int64, "positions"); }
  weighted = r.index_rows(weighted, inverse, hidden.width());
  const Tensor sum = r.sum_of_parts(weighted, f.dims.N);
  return r.cast(sum, hidden.dtype());
}

}  // namespace membill
