#include "blocks/gpt_oss.h"

#include "blocks/experts.h"
#include "blocks/own_norms.h"

namespace membill {
namespace {

// _apply_rotary_emb: halves rotated against one another by tables half as wide as a head.
Tensor rotate_halves(Forward& f, const Tensor& x, const LayerInputs& inputs) {
  Recorder& r = f.r;
  const auto [first, second] = r.split_in_two(x, {x.rows(), inputs.cos.width()});
  const Tensor left = r.sub(r.mul(first, inputs.cos), r.mul(second, inputs.sin), "rotated, first half");
  const Tensor right = r.add(r.mul(second, inputs.cos), r.mul(first, inputs.sin), "rotated, second half");
  return r.concatenate(left, right, x.shape());
}

Tensor repeat_heads(Forward& f, const LayerContext& layer, const Tensor& x) {
  if (layer.kind.attention.kv_heads == layer.kind.attention.heads) return x;
  return f.r.contiguous_copy(x, {f.dims.N * layer.dims.a, x.width()}, "repeated key/value heads");
}

Tensor gpt_oss_heads_first(Forward& f, const Tensor& x) {
  return f.one_row() ? x : f.r.contiguous_copy(x, x.shape(), "contiguous heads");
}

// combined - combined.max(dim=-1, keepdim=True).values
Tensor less_the_largest(Forward& f, const Tensor& combined) {
  Recorder& r = f.r;
  const Tensor largest = r.top_of_rows(combined, Size(1))[0];
  return r.sub(combined, largest, "scores less the largest");
}

// eager_attention_forward: the sinks are one more column of the scores, and the softmax stays in their type.
Tensor attend(Forward& f, const LayerContext& layer, const Heads& heads, const Tensor& mask, Tensor& weights) {
  Recorder& r = f.r;
  const KindDims& dims = layer.dims;
  const Shape square{f.dims.N * dims.a, f.dims.s}, wider{square.rows, f.dims.s + Size(1)};
  const Tensor keys = repeat_heads(f, layer, heads.k), values = repeat_heads(f, layer, heads.v);
  Tensor right = r.autocast_input(keys), left = r.autocast_input(heads.q);  // both lie as the product wants them
  weights =
      r.mul_scalar(r.batched_matmul(std::move(left), std::move(right), square, "attention scores"), "scaled scores");
  weights = r.add(weights, mask, "masked scores");
  const Tensor sinks = r.broadcast_view(layer.modules.at("self_attn.sinks").weight.value, {square.rows, Size(1)});
  Tensor combined = r.concatenate(weights, sinks, wider);
  combined = less_the_largest(f, combined);
  const Tensor probabilities = r.softmax(combined, combined.dtype());
  const Tensor scores = r.slice(probabilities, f.dims.s);
  weights = r.cast(r.dropout(scores, f.attention_dropout), values.dtype());
  const bool repeats = layer.kind.attention.kv_heads != layer.kind.attention.heads;
  Tensor summed = r.autocast_input(values);
  if (!repeats) summed = gpt_oss_heads_first(f, summed);
  const Tensor output = heads_first_gradient(
      f, r.batched_matmul(r.autocast_input(weights), std::move(summed), {square.rows, dims.d}, "attention output"));
  return r.contiguous_copy(output, {f.dims.N, dims.a * dims.d}, "attention output, heads last");
}

// _apply_gate: gate and up are every other column of one product; both are clamped.
Tensor apply_gate(Forward& f, const Tensor& both, const Size& width) {
  Recorder& r = f.r;
  Tensor gate = r.slice(both, width), up = r.slice(both, width);
  gate = r.clamp(gate, Recorder::Bounds::one);
  up = r.clamp(up, Recorder::Bounds::both);
  const Tensor glu = r.mul(gate, r.sigmoid(r.mul_scalar(gate, "scaled gate")), "gated");
  return r.mul(r.add_scalar(up), glu, "gated product");
}

Routing route_by_top_logits(Forward& f, const LayerContext& layer, const Tensor& hidden) {
  Recorder& r = f.r;
  Module& router = layer.modules.at("mlp.router");
  Routing routing;
  routing.logits = r.linear(hidden, router.weight, router.bias.get());
  auto [values, indices] = r.top_of_rows(routing.logits, layer.dims.top);
  routing.weights = r.softmax(values, values.dtype());
  routing.indices = std::move(indices);
  return routing;
}

}  // namespace

LayerInputs GptOssArchitecture::prepare(Forward& f, const Modules&, const Tensor& hidden) const {
  Recorder& r = f.r;
  LayerInputs inputs;
  inputs.position_ids = r.empty({f.dims.s, Size(1)}, DType::int64, "position ids");
  make_masks(f, inputs);
  const Size half = r.symbols().ceil_div(rotary_columns(f), Size(2));
  const Tensor angles = r.empty({f.dims.s, half}, DType::fp32, "rotary angles");
  const Tensor cos = r.mul_scalar(r.empty({f.dims.s, half}, DType::fp32, "cos"));
  const Tensor sin = r.mul_scalar(r.empty({f.dims.s, half}, DType::fp32, "sin"));
  inputs.cos = r.cast(cos, hidden.dtype());
  inputs.sin = r.cast(sin, hidden.dtype());
  return inputs;
}

Tensor GptOssArchitecture::norm(Forward& f, Module& module, Tensor x) const {
  return olmo2_rms_norm(f, module, std::move(x));
}

Tensor GptOssArchitecture::attention(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                     const LayerInputs& inputs, Tensor& weights) const {
  Heads heads = project_plain(f, layer, hidden, true);
  Tensor q = rotate_halves(f, heads.q, inputs), k = rotate_halves(f, heads.k, inputs);
  heads.q = std::move(q);
  heads.k = std::move(k);
  const Tensor& mask = layer.kind.attention.sliding_window ? inputs.local_mask : inputs.mask;
  Tensor output = attend(f, layer, heads, mask, weights);
  return apply_linear(f, layer.modules.at("self_attn.o_proj"), std::move(output));
}

Tensor GptOssArchitecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  const Routing routing = route_by_top_logits(f, layer, hidden);
  ExpertShape shape;
  shape.biases = true;
  shape.gate = [&f, &layer](const Tensor& both) { return apply_gate(f, both, layer.dims.expert_width); };
  return run_experts(f, layer, "mlp.experts.", hidden, routing, shape);
}

}  // namespace membill
