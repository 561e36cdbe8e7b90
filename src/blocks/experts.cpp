#include "blocks/experts.h"

#include "blocks/layers.h"

namespace membill {
namespace {

// The rows of all tokens in the order of their experts.
struct Dispatch {
  Tensor sorted_experts, order, tokens, rows, weights, counted, counts, offsets;
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
  d.tokens = r.empty(column, DType::int64, "token of each row");
  d.rows = r.index_rows(hidden, d.tokens, hidden.width());
  d.weights = r.index_rows(weights, d.order, Size(1));
  d.counted = r.empty(column, DType::int32, "experts in 32 bits");
  d.counts = r.empty(experts, DType::int32, "rows of each expert");
  d.offsets = r.empty(experts, DType::int32, "end of each expert's rows");
  return d;
}

}  // namespace

Routing route(Forward& f, const LayerContext& layer, Module& router, const RouterShape& shape, const Tensor& hidden) {
  Recorder& r = f.r;
  Routing routing;
  routing.logits = r.linear(hidden, router.weight);
  const Tensor probabilities = shape.explicit_type ? r.softmax(routing.logits, DType::fp32)
                                                   : r.softmax(r.cast(routing.logits, DType::fp32), std::nullopt);
  auto [values, indices] = r.top_of_rows(probabilities, layer.dims.top);
  if (shape.normalise) values = r.div_in_place(values, r.sum_of_rows(values));
  if (shape.back) values = r.cast(values, routing.logits.dtype());
  routing.weights = std::move(values);
  routing.indices = std::move(indices);
  return routing;
}

Routing route_by_logits(Forward& f, const LayerContext& layer, Module& router, const Tensor& hidden) {
  Recorder& r = f.r;
  Routing routing;
  routing.logits = r.cast(r.linear(hidden, router.weight), DType::fp32);
  auto [values, indices] = r.top_of_rows(routing.logits, layer.dims.top);
  routing.weights = r.cast(r.softmax(values, std::nullopt), hidden.dtype());
  routing.indices = std::move(indices);
  return routing;
}

Tensor run_experts(Forward& f, const LayerContext& layer, const std::string& prefix, const Tensor& hidden,
                   const Routing& routing) {
  Recorder& r = f.r;
  const Size pairs = f.dims.N * layer.dims.top;
  const Shape column{pairs, Size(1)};
  const Dispatch d = dispatch(f, layer, hidden, routing);
  const Shape half{pairs, layer.dims.expert_width};
  Tensor out = r.grouped_linear(d.rows, layer.modules.at(prefix + "gate_up_proj").weight, d.offsets,
                                Size(2) * layer.dims.expert_width);
  {
    const auto [gate, up] = r.split_in_two(out, half);
    out = r.mul(activation(f, layer.kind.mlp.activation, gate), up, "gated product");
  }
  out = r.grouped_linear(out, layer.modules.at(prefix + "down_proj").weight, d.offsets, hidden.width());
  Tensor weighted = r.mul(out, d.weights, "weighted expert outputs");
  const Tensor inverse = r.empty(column, DType::int64, "inverse order");
  { const Tensor positions = r.empty(column, DType::int64, "positions"); }
  weighted = r.index_rows(weighted, inverse, hidden.width());
  const Tensor sum = r.sum_of_parts(weighted, f.dims.N);
  return r.cast(sum, hidden.dtype());
}

}  // namespace membill
