#include "blocks/gpt_neox.h"

#include "blocks/layer_norm_parts.h"
#include "blocks/layers.h"

namespace membill {
namespace {

Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs,
                 Tensor& weights) {
  const KindDims& dims = layer.dims;
  const Size heads = f.dims.N * dims.a;
  const Tensor fused = seen_as_heads(f, apply_linear(f, layer.modules.at("attention.query_key_value"), hidden), dims.a,
                                     Size(3) * dims.d, true);
  const auto [q_plain, k_plain, v] = f.r.split_in_three(fused, {heads, dims.d});
  auto [q, k] = rotate_partly(f, q_plain, k_plain, inputs);
  AttentionCall call{dims, layer.kind.attention, choose_attention(f, layer.kind, inputs.mask.defined()), inputs.mask};
  call.query_contiguous = true;
  call.weights = &weights;
  Tensor output = run_attention(f, call, q, k, v);
  return apply_linear(f, layer.modules.at("attention.dense"), output);
}

}  // namespace

Tensor GptNeoxArchitecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  const Tensor tokens = embed_tokens(f, outer, ids);
  f.locals = {tokens};
  return f.r.dropout(tokens, f.embedding_dropout);
}

LayerInputs GptNeoxArchitecture::prepare(Forward& f, const Modules&, const Tensor& hidden) const {
  return rotary_inputs(f, f.dims.kinds.at(1).at(0).rotary, hidden);
}

Tensor GptNeoxArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden,
                                  const LayerInputs& inputs) const {
  Recorder& r = f.r;
  Modules& modules = layer.modules;
  Tensor weights;
  Tensor attended = attention(f, layer, layer_norm(f, modules.at("input_layernorm"), hidden), inputs, weights);
  attended = r.dropout(attended, f.hidden_dropout);
  const PlainMlp names{"mlp.dense_h_to_4h", "mlp.dense_4h_to_h", layer.kind.mlp.activation};
  if (!layer.kind.parallel_residual) attended = r.add(attended, hidden, "residual stream");
  const Tensor& input = layer.kind.parallel_residual ? hidden : attended;
  Tensor forwarded = plain_mlp(f, modules, names, layer_norm(f, modules.at("post_attention_layernorm"), input));
  forwarded = r.dropout(forwarded, f.hidden_dropout);
  const ItemScope scope(r, f.items.boundary);
  if (!layer.kind.parallel_residual) return r.add(forwarded, attended, "layer output");
  return r.add(r.add(forwarded, attended, "MLP and attention"), hidden, "layer output");
}

Tensor GptNeoxArchitecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  return layer_norm(f, outer.at("gpt_neox.final_layer_norm"), std::move(hidden));
}

}  // namespace membill
