#include "blocks/gpt_bigcode.h"

#include "blocks/layer_norm_parts.h"
#include "blocks/layers.h"

namespace membill {
Tensor GptBigCodeArchitecture::attention(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                         const LayerInputs& inputs, Tensor& weights) const {
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

}  // namespace membill
