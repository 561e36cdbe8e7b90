#include "blocks/gpt_neo.h"

#include "blocks/layer_norm_parts.h"
#include "blocks/layers.h"
#include "blocks/llama.h"

namespace membill {
namespace {

// The gradient of keys comes with their columns first, and of one row is what the projection takes.
Tensor keys_of(Forward& f, const Tensor& projected) { return heads_first_gradient(f, projected); }

}  // namespace

// The mask is made before the positions are looked up.
Tensor GptNeoArchitecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  const Tensor tokens = embed_tokens(f, outer, ids);
  f.locals = {tokens, position_ids(f)};
  LayerInputs inputs;
  make_masks(f, inputs);
  f.locals.push_back(inputs.mask);
  f.locals.push_back(apply_embedding(f, outer.at("transformer.wpe"), f.locals.at(1)));
  return f.r.dropout(f.r.add(tokens, f.locals.back(), "tokens and positions"), f.embedding_dropout);
}

LayerInputs GptNeoArchitecture::prepare(Forward& f, const Modules&, const Tensor&) const {
  LayerInputs inputs;
  inputs.position_ids = f.locals.at(1);
  inputs.mask = f.locals.at(2);
  return inputs;
}

// Scores outside of the window take the place of scaled ones: torch.where with a buffer of the layer, which needs as much memory.
Tensor GptNeoArchitecture::attention(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                     const LayerInputs& inputs, Tensor& weights) const {
  const KindDims& dims = layer.dims;
  const auto project = [&](const char* name) { return apply_linear(f, layer.modules.at(name), hidden); };
  Tensor q = project("attn.attention.q_proj"), k = keys_of(f, project("attn.attention.k_proj")),
         v = project("attn.attention.v_proj");
  q = seen_as_heads(f, q, dims.a, dims.d);
  k = f.r.view(k, {f.dims.N * dims.a, dims.d});
  v = seen_as_heads(f, v, dims.a, dims.d);
  AttentionCall call{dims, layer.kind.attention, choose_attention(f, layer.kind, inputs.mask.defined()), inputs.mask};
  call.native_softmax = true;
  call.weights = &weights;
  Tensor output = [&] {
    if (call.choice.kernel != AttentionKernel::eager) return run_attention(f, call, q, k, v);
    const Tensor wide_q = f.r.cast(q, DType::fp32), wide_k = f.r.cast(k, DType::fp32);
    const Tensor least = f.r.empty({Size(1), Size(1)}, DType::fp32, "least score");
    return run_attention(f, call, wide_q, wide_k, v);
  }();
  if (!weights.defined()) weights = output;  // the class of flash attention returns this in their place
  output = apply_linear(f, layer.modules.at("attn.attention.out_proj"), output);
  return f.r.dropout(output, f.hidden_dropout);
}

}  // namespace membill
