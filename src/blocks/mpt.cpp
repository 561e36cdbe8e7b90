#include "blocks/mpt.h"

#include "blocks/layer_norm_parts.h"
#include "blocks/layers.h"
#include "blocks/llama.h"

namespace membill {
namespace {

Tensor heads_first(Forward& f, const Tensor& x) {
  return f.one_row() ? x : f.r.contiguous_copy(x, x.shape(), "contiguous heads");
}

Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs,
                 Tensor& weights) {
  Recorder& r = f.r;
  const KindDims& dims = layer.dims;
  const Shape heads{f.dims.N * dims.a, dims.d}, square{heads.rows, f.dims.s};
  Tensor fused = apply_linear(f, layer.modules.at("attn.Wqkv"), hidden);
  if (layer.kind.attention.clips_qkv) fused = r.clamp(fused, Recorder::Bounds::both);
  const auto [q, k, v] = r.split_in_three(fused, heads);
  Tensor left = heads_first(f, r.autocast_input(q)), right = heads_first(f, r.autocast_input(k));
  Tensor scores =
      r.mul_scalar(r.batched_matmul(std::move(left), std::move(right), square, "attention scores"), "scaled scores");
  scores = r.add(scores, inputs.extra, "scores and alibi");
  scores = r.masked_fill(scores, inputs.mask, "masked scores");
  weights = r.cast(r.softmax(r.cast(scores, DType::fp32), std::nullopt), v.dtype());
  weights = r.dropout(weights, f.attention_dropout);
  Tensor values = heads_first(f, r.autocast_input(v));
  Tensor context = heads_first_gradient(
      f, r.batched_matmul(r.autocast_input(weights), std::move(values), heads, "attention output"));
  context = r.contiguous_copy(context, {f.dims.N, dims.a * dims.d}, "attention output, heads last");
  return apply_linear(f, layer.modules.at("attn.out_proj"), context);
}

Tensor mpt_mlp(Forward& f, const LayerContext& layer, const Tensor& normed, const Tensor& residual) {
  const Tensor output = plain_mlp(f, layer.modules, {"ffn.up_proj", "ffn.down_proj", "gelu"}, normed);
  const ItemScope scope(f.r, f.items.boundary);
  const Tensor dropped = f.r.dropout(output, f.attention_dropout);
  return f.r.add(dropped, residual, "layer output");
}

}  // namespace

// Alibi over the longest sequence that the model knows; a boolean mask.
LayerInputs MptArchitecture::prepare(Forward& f, const Modules&, const Tensor&) const {
  Recorder& r = f.r;
  const bool grad = r.grad_enabled();
  r.set_grad_enabled(false);
  LayerInputs inputs;
  const Size positions(f.model.max_positions);
  {
    const Tensor distances = r.empty({positions, Size(1)}, DType::int32, "distances");
    inputs.extra = r.empty({positions, f.dims.kinds.at(1).at(0).a}, DType::fp32, "alibi");
  }
  make_masks(f, inputs);
  inputs.mask = r.empty(inputs.mask.shape(), DType::boolean, "causal mask, boolean");
  r.set_grad_enabled(grad);
  return inputs;
}

Tensor MptArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden, const LayerInputs& inputs) const {
  Tensor normed = layer_norm(f, layer.modules.at("norm_1"), hidden), weights;
  Tensor residual = hidden;
  const Tensor attended = attention(f, layer, normed, inputs, weights);
  hidden = f.r.add(f.r.dropout(attended, f.attention_dropout), residual, "residual stream");
  normed = layer_norm(f, layer.modules.at("norm_2"), hidden);
  residual = hidden;
  Tensor output = mpt_mlp(f, layer, normed, residual);
  f.second_output = std::move(weights);
  return output;
}

Tensor MptArchitecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  return layer_norm(f, outer.at("transformer.norm_f"), std::move(hidden));
}

}  // namespace membill
