#include "blocks/fused_llama.h"

#include "blocks/own_rotary.h"

namespace membill {
namespace {

// Phi3MLP: gate and up are halves of one product.
Tensor fused_gated_mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) {
  Recorder& r = f.r;
  const Shape half{f.dims.N, layer.dims.f};
  const auto [gate, up] = r.split_in_two(apply_linear(f, layer.modules.at("mlp.gate_up_proj"), hidden), half);
  Tensor product = r.mul(up, activation(f, layer.kind.mlp.activation, gate), "gated product");
  return apply_linear(f, layer.modules.at("mlp.down_proj"), product);
}

}  // namespace

Heads Phi3Architecture::project(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  Recorder& r = f.r;
  const KindDims& dims = layer.dims;
  const Tensor qkv = apply_linear(f, layer.modules.at("self_attn.qkv_proj"), hidden);
  Heads heads{r.slice(qkv, dims.a * dims.d), r.slice(qkv, dims.k * dims.d), r.slice(qkv, dims.k * dims.v)};
  heads.q = seen_to_rotate(f, dims, heads.q, dims.a, true);
  heads.k = seen_to_rotate(f, dims, heads.k, dims.k, true);
  heads.v = seen_as_heads(f, heads.v, dims.k, dims.v);
  return heads;
}

void Phi3Architecture::rotate(Forward& f, const LayerContext&, const LayerInputs& inputs, Heads& heads) const {
  rotate_part(f, inputs, heads);
}

Tensor Phi3Architecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  return fused_gated_mlp(f, layer, hidden);
}

Tensor Phi3Architecture::branch(Forward& f, const Tensor& output) const {
  return f.r.dropout(output, f.hidden_dropout);
}

void GlmArchitecture::rotate(Forward& f, const LayerContext&, const LayerInputs& inputs, Heads& heads) const {
  rotate_neighbours(f, inputs, heads);
}

Tensor GlmArchitecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  return fused_gated_mlp(f, layer, hidden);
}

Glm4Architecture::NormNames Glm4Architecture::norm_names() const {
  return {"input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm", "post_mlp_layernorm"};
}

}  // namespace membill
