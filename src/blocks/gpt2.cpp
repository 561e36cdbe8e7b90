#include "blocks/gpt2.h"

#include "blocks/layer_norm_parts.h"
#include "blocks/layers.h"
#include "blocks/llama.h"

namespace membill {
Tensor Gpt2Architecture::attention(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                   const LayerInputs& inputs, Tensor& weights) const {
  const KindDims& dims = layer.dims;
  const auto [q, k, v] =
      f.r.split_in_three(apply_linear(f, layer.modules.at("attn.c_attn"), hidden), {f.dims.N * dims.a, dims.d});
  AttentionCall call{dims, layer.kind.attention, choose_attention(f, layer.kind, inputs.mask.defined()), inputs.mask};
  call.native_softmax = true;
  call.weights = &weights;
  Tensor output = run_attention(f, call, q, k, v);
  output = apply_linear(f, layer.modules.at("attn.c_proj"), output);
  return f.r.dropout(output, f.hidden_dropout);
}

Tensor Gpt2Architecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  Recorder& r = f.r;
  const Tensor tokens = embed_tokens(f, outer, ids);
  f.locals = {tokens, position_ids(f)};
  f.locals.push_back(apply_embedding(f, outer.at("transformer.wpe"), f.locals.back()));
  return r.dropout(r.add(tokens, f.locals.back(), "tokens and positions"), f.embedding_dropout);
}

LayerInputs Gpt2Architecture::prepare(Forward& f, const Modules&, const Tensor&) const {
  LayerInputs inputs;
  inputs.position_ids = f.locals.at(1);
  make_masks(f, inputs);
  return inputs;
}

Tensor Gpt2Architecture::layer(Forward& f, const LayerContext& layer, Tensor hidden, const LayerInputs& inputs) const {
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
  Tensor output = f.r.add(residual, forwarded, "layer output");
  if (returns_weights()) f.second_output = std::move(weights);
  return output;
}

Tensor Gpt2Architecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  return layer_norm(f, outer.at("transformer.ln_f"), std::move(hidden));
}

}  // namespace membill
