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

Tensor OlmoArchitecture::finish(Forward& f, const Modules&, Tensor hidden) const {
  return olmo_layer_norm(f, std::move(hidden));
}

void OlmoArchitecture::rotate(Forward& f, const LayerContext&, const LayerInputs& inputs, Heads& heads) const {
  rotate_by_wide_tables(f, inputs, heads);
}

Olmo2Architecture::NormNames Olmo2Architecture::norm_names() const {
  return {nullptr, "post_attention_layernorm", nullptr, "post_feedforward_layernorm"};
}

Tensor Olmo2Architecture::norm(Forward& f, Module& module, Tensor x) const {
  return olmo2_rms_norm(f, module, std::move(x));
}

Heads Olmo2Architecture::project(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  return project_with_whole_norms(f, layer, hidden);
}

void Olmo2Architecture::rotate(Forward& f, const LayerContext&, const LayerInputs& inputs, Heads& heads) const {
  rotate_by_wide_tables(f, inputs, heads);
}

LayerInputs Olmo3Architecture::prepare(Forward& f, const Modules&, const Tensor&) const {
  return inputs_by_layer_type(f, DType::fp32);
}

void Olmo3Architecture::rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const {
  rotate_by_wide_tables(f, tables_of(layer, inputs), heads);
}

}  // namespace membill
