#include "blocks/phi.h"

#include "blocks/attention.h"
#include "blocks/layer_norm_parts.h"
#include "blocks/layers.h"

namespace membill {
namespace {

struct PhiHeads {
  Tensor q, k, v;
};

// Each projection seen as heads, or all of them once they are made (`together`); a norm of each head follows where the model has one
// (the module of a head norm is one LayerNorm).
PhiHeads project(Forward& f, const LayerContext& layer, const Tensor& hidden, bool together) {
  const KindDims& dims = layer.dims;
  const auto made = [&](const char* name) { return apply_linear(f, layer.modules.at(name), hidden); };
  const auto seen = [&](const Tensor& x, const Size& heads, bool cut) {
    return seen_as_heads(f, x, heads, dims.d, cut);
  };
  PhiHeads heads;
  heads.q = made("self_attn.q_proj");
  if (!together) heads.q = seen(heads.q, dims.a, true);
  heads.k = made("self_attn.k_proj");
  if (!together) heads.k = seen(heads.k, dims.k, true);
  heads.v = made("self_attn.v_proj");
  if (together) heads.q = seen(heads.q, dims.a, true), heads.k = seen(heads.k, dims.k, true);
  heads.v = seen(heads.v, dims.k, false);
  return heads;
}

Tensor attend(Forward& f, const LayerContext& layer, const PhiHeads& heads, const LayerInputs& inputs, bool partly,
              Tensor& weights) {
  const Tensor& mask = layer.kind.attention.sliding_window ? inputs.local_mask : inputs.mask;
  AttentionCall call{layer.dims, layer.kind.attention, choose_attention(f, layer.kind, mask.defined()), mask};
  call.query_contiguous = partly;
  call.weights = &weights;
  return run_attention(f, call, heads.q, heads.k, heads.v);
}

// Attention of phi and stablelm: a part of each head is rotated. The whole projections live until the concatenation replaces them.
Tensor partly_rotated_attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs,
                                const char* output_name, Tensor& weights, bool together) {
  Recorder& r = f.r;
  const Size& rotary = inputs.cos.width();
  PhiHeads heads = project(f, layer, hidden, together);
  if (Module* q_norm = layer.modules.find("self_attn.q_layernorm")) {
    heads.q = layer_norm(f, *q_norm, heads.q);
    heads.k = layer_norm(f, layer.modules.at("self_attn.k_layernorm"), heads.k);
  }
  const Size rest = layer.dims.d - rotary;
  Tensor q_rotating = r.slice(heads.q, rotary);
  const Tensor q_rest = r.slice(heads.q, rest);
  Tensor k_rotating = r.slice(heads.k, rotary);
  const Tensor k_rest = r.slice(heads.k, rest);
  Tensor q_rotated = apply_rotary(f, q_rotating, inputs.cos, inputs.sin);
  Tensor k_rotated = apply_rotary(f, k_rotating, inputs.cos, inputs.sin);
  q_rotating = std::move(q_rotated);
  k_rotating = std::move(k_rotated);
  heads.q = r.concatenate(q_rotating, q_rest, heads.q.shape());
  heads.k = r.concatenate(k_rotating, k_rest, heads.k.shape());
  Tensor output = attend(f, layer, heads, inputs, true, weights);
  return apply_linear(f, layer.modules.at(output_name), output);
}

Tensor whole_rotated_attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs,
                               Tensor& weights) {
  PhiHeads heads = project(f, layer, hidden, false);
  Tensor q_rotated = apply_rotary(f, heads.q, inputs.cos, inputs.sin);
  Tensor k_rotated = apply_rotary(f, heads.k, inputs.cos, inputs.sin);
  heads.q = std::move(q_rotated);
  heads.k = std::move(k_rotated);
  Tensor output = attend(f, layer, heads, inputs, false, weights);
  output = apply_linear(f, layer.modules.at("self_attn.o_proj"), output);
  return f.r.dropout(output, f.hidden_dropout);
}

}  // namespace

Tensor PhiArchitecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  return f.r.dropout(embed_tokens(f, outer, ids), f.embedding_dropout);
}

LayerInputs PhiArchitecture::prepare(Forward& f, const Modules&, const Tensor& hidden) const {
  return rotary_inputs(f, f.dims.kinds.at(1).at(0).rotary, hidden);
}

Tensor PhiArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden, const LayerInputs& inputs) const {
  Recorder& r = f.r;
  const Tensor residual = hidden;
  Tensor weights;
  hidden = layer_norm(f, layer.modules.at("input_layernorm"), hidden);
  Tensor attended = partly_rotated_attention(f, layer, hidden, inputs, "self_attn.dense", weights, false);
  attended = r.dropout(attended, f.hidden_dropout);
  Tensor forwarded = plain_mlp(f, layer.modules, {"mlp.fc1", "mlp.fc2", layer.kind.mlp.activation}, hidden);
  forwarded = r.dropout(forwarded, f.hidden_dropout);
  Tensor sum = r.add(attended, forwarded, "MLP and attention");
  const ItemScope scope(r, f.items.boundary);
  return r.add(std::move(sum), residual, "layer output");
}

Tensor PhiArchitecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  return layer_norm(f, outer.at("model.final_layernorm"), std::move(hidden));
}

Tensor StableLmArchitecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  return embed_tokens(f, outer, ids);
}

Tensor StableLmArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden,
                                   const LayerInputs& inputs) const {
  Recorder& r = f.r;
  Modules& modules = layer.modules;
  const std::string& act = layer.kind.mlp.activation;
  Tensor residual = hidden, weights;
  hidden = layer_norm(f, modules.at("input_layernorm"), hidden);
  const Tensor attended = partly_rotated_attention(f, layer, hidden, inputs, "self_attn.o_proj", weights, true);
  Module* second_norm = modules.find("post_attention_layernorm");
  if (second_norm == nullptr) {
    const Tensor forwarded = r.dropout(gated_mlp(f, modules, "mlp.", act, hidden), f.hidden_dropout);
    Tensor sum = r.add(residual, attended, "residual stream");
    const ItemScope scope(r, f.items.boundary);
    return r.add(std::move(sum), forwarded, "layer output");
  }
  residual = r.add(residual, attended, "residual stream");
  const Tensor forwarded =
      r.dropout(gated_mlp(f, modules, "mlp.", act, layer_norm(f, *second_norm, residual)), f.hidden_dropout);
  const ItemScope scope(r, f.items.boundary);
  return r.add(residual, forwarded, "layer output");
}

Tensor StableLmArchitecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  return layer_norm(f, outer.at("model.norm"), std::move(hidden));
}

Tensor Starcoder2Architecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  const Tensor tokens = embed_tokens(f, outer, ids);
  f.locals = {tokens};
  return f.r.dropout(tokens, f.embedding_dropout);
}

Tensor Starcoder2Architecture::layer(Forward& f, const LayerContext& layer, Tensor hidden,
                                     const LayerInputs& inputs) const {
  Recorder& r = f.r;
  Modules& modules = layer.modules;
  Tensor residual = hidden, weights;
  hidden = layer_norm(f, modules.at("input_layernorm"), hidden);
  hidden = whole_rotated_attention(f, layer, hidden, inputs, weights);
  hidden = r.add(residual, hidden, "residual stream");
  residual = hidden;
  hidden = layer_norm(f, modules.at("post_attention_layernorm"), hidden);
  hidden =
      r.dropout(plain_mlp(f, modules, {"mlp.c_fc", "mlp.c_proj", layer.kind.mlp.activation}, hidden), f.hidden_dropout);
  const ItemScope scope(r, f.items.boundary);
  hidden = r.add(residual, hidden, "layer output");
  return hidden;
}

Tensor Starcoder2Architecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  return layer_norm(f, outer.at("model.norm"), std::move(hidden));
}

}  // namespace membill
