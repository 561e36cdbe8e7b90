#include "blocks/olmo.h"

#include "blocks/own_norms.h"
#include "blocks/own_rotary.h"

namespace membill {

Tensor OlmoArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden, const LayerInputs& inputs) const {
  Tensor residual = hidden, weights;
  hidden = olmo_layer_norm(f, hidden);
  hidden = attention(f, layer, hidden, inputs, weights);
  hidden = f.r.add(residual, hidden, "residual stream");
  residual = hidden;
  hidden = olmo_layer_norm(f, hidden);
  hidden = mlp(f, layer, hidden);
  const ItemScope scope(f.r, f.items.boundary);
  return f.r.add(residual, hidden, "layer output");
}

Tensor OlmoArchitecture::finish(Forward& f, const Modules&, Tensor hidden) const { return olmo_layer_norm(f, std::move(hidden)); }

void OlmoArchitecture::rotate(Forward& f, const LayerContext&, const LayerInputs& inputs, Heads& heads) const {
  rotate_by_wide_tables(f, inputs, heads);
}

Olmo2Architecture::NormNames Olmo2Architecture::norm_names() const {
  return {nullptr, "post_attention_layernorm", nullptr, "post_feedforward_layernorm"};
}

Tensor Olmo2Architecture::norm(Forward& f, Module& module, Tensor x) const { return olmo2_rms_norm(f, module, std::move(x)); }

Heads Olmo2Architecture::project(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  const KindDims& dims = layer.dims;
  const Modules& modules = layer.modules;
  Heads heads;
  heads.q = norm(f, modules.at("self_attn.q_norm"), apply_linear(f, modules.at("self_attn.q_proj"), hidden));
  heads.k = norm(f, modules.at("self_attn.k_norm"), apply_linear(f, modules.at("self_attn.k_proj"), hidden));
  heads.v = apply_linear(f, modules.at("self_attn.v_proj"), hidden);
  heads.q = f.r.view(std::move(heads.q), {f.dims.N * dims.a, dims.d});
  heads.k = f.r.view(std::move(heads.k), {f.dims.N * dims.k, dims.d});
  heads.v = f.r.view(std::move(heads.v), {f.dims.N * dims.k, dims.v});
  return heads;
}

void Olmo2Architecture::rotate(Forward& f, const LayerContext&, const LayerInputs& inputs, Heads& heads) const {
  rotate_by_wide_tables(f, inputs, heads);
}

}  // namespace membill
