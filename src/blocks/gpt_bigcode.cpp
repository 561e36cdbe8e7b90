#include "blocks/gpt_bigcode.h"

#include "blocks/layer_norm_parts.h"
#include "blocks/layers.h"

namespace membill {
namespace {

Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs,
                 Tensor& weights) {
  const KindDims& dims = layer.dims;
  const Shape queries{f.dims.N * dims.a, dims.d}, groups{f.dims.N * dims.k, dims.d};
  const auto [q, k, v] =
      f.r.split_in_three(apply_linear(f, layer.modules.at("attn.c_attn"), hidden), queries, groups, groups);
  AttentionCall call{dims, layer.kind.attention, choose_attention(f, layer.kind, inputs.mask.defined()), inputs.mask};
  call.weights = &weights;
  Tensor output = run_attention(f, call, q, k, v);
  output = apply_linear(f, layer.modules.at("attn.c_proj"), output);
  return f.r.dropout(output, f.hidden_dropout);
}

}  // namespace

Tensor GptBigCodeArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden,
                                     const LayerInputs& inputs) const {
  Modules& modules = layer.modules;
  Tensor residual = hidden, weights;
  hidden = layer_norm(f, modules.at("ln_1"), hidden);
  const Tensor attended = attention(f, layer, hidden, inputs, weights);
  hidden = f.r.add(attended, residual, "residual stream");
  residual = hidden;
  hidden = layer_norm(f, modules.at("ln_2"), hidden);
  Tensor forwarded = plain_mlp(f, modules, {"mlp.c_fc", "mlp.c_proj", layer.kind.mlp.activation}, hidden);
  forwarded = f.r.dropout(forwarded, f.hidden_dropout);
  const ItemScope scope(f.r, f.items.boundary);
  return f.r.add(residual, forwarded, "layer output");
}

}  // namespace membill
