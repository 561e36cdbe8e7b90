#include "blocks/cohere.h"

#include "blocks/own_norms.h"
#include "blocks/own_rotary.h"

namespace membill {

Tensor CohereArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden,
                                 const LayerInputs& inputs) const {
  const Tensor residual = hidden;
  Tensor weights;
  hidden = norm(f, layer.modules.at("input_layernorm"), hidden);
  const Tensor attended = attention(f, layer, hidden, inputs, weights);
  const Tensor expanded = mlp(f, layer, hidden);
  Tensor sum = f.r.add(residual, attended, "residual and attention");
  const ItemScope scope(f.r, f.items.boundary);
  return f.r.add(std::move(sum), expanded, "layer output");
}

Tensor CohereArchitecture::head(Forward& f, const Modules& outer, Tensor hidden) const {
  const Tensor logits = LlamaArchitecture::head(f, outer, std::move(hidden));
  return f.r.mul_scalar(logits, "scaled logits");
}

Tensor CohereArchitecture::norm(Forward& f, Module& module, Tensor x) const {
  return cohere_layer_norm(f, module, std::move(x));
}

Heads CohereArchitecture::project(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  return project_then_norm(f, layer, hidden);
}

void CohereArchitecture::rotate(Forward& f, const LayerContext&, const LayerInputs& inputs, Heads& heads) const {
  rotate_in_fp32(f, inputs, heads);
}

void Cohere2Architecture::rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const {
  if (layer.kind.attention.sliding_window) CohereArchitecture::rotate(f, layer, inputs, heads);
}

}  // namespace membill
