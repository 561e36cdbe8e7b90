#include "blocks/granite_hybrid.h"

#include "blocks/layer_norm_parts.h"
#include "blocks/layers.h"
#include "blocks/mamba2.h"

namespace membill {
namespace {

Tensor shared_mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) {
  Recorder& r = f.r;
  const Tensor both = apply_linear(f, layer.modules.at("shared_mlp.input_linear"), hidden);
  const auto [gate, up] = r.split_in_two(both, {f.dims.N, r.symbols().ceil_div(both.width(), Size(2))});
  const auto product = [&, &gate = gate, &up = up] {
    return r.mul(activation(f, layer.kind.mlp.activation, gate), up, "gated product");
  };
  return apply_linear(f, layer.modules.at("shared_mlp.output_linear"), product());
}

}  // namespace

// Without rotary positions the model makes no tables.
LayerInputs GraniteHybridArchitecture::prepare(Forward& f, const Modules& outer, const Tensor& hidden) const {
  if (!rotary_columns(f).is_zero()) return GraniteMoeArchitecture::prepare(f, outer, hidden);
  return inputs_without_rotary(f);
}

Tensor GraniteHybridArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden,
                                        const LayerInputs& inputs) const {
  hidden = GraniteMoeArchitecture::layer(f, layer, std::move(hidden), inputs);
  f.second_output.drop();
  return hidden;
}

Tensor GraniteHybridArchitecture::attention(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                            const LayerInputs& inputs, Tensor& weights) const {
  if (layer.kind.state_space) return mamba2_mixer(f, layer, "mamba.", hidden);
  return GraniteMoeArchitecture::attention(f, layer, hidden, inputs, weights);
}

Tensor GraniteHybridArchitecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  if (!layer.kind.moe) return shared_mlp(f, layer, hidden);
  f.second_output = GraniteMoeArchitecture::mlp(f, layer, hidden);  // a variable until the layer's end
  return f.r.add(f.second_output, shared_mlp(f, layer, hidden), "experts and shared MLP");
}

}  // namespace membill
