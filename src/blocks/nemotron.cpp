#include "blocks/nemotron.h"

#include "blocks/layer_norm_parts.h"
#include "blocks/own_rotary.h"

namespace membill {

Tensor ArceeArchitecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  return plain_mlp(f, layer.modules, {"mlp.up_proj", "mlp.down_proj", layer.kind.mlp.activation}, hidden);
}

// NemotronLayerNorm1P: autocast casts every argument, then stays off.
Tensor NemotronArchitecture::norm(Forward& f, Module& module, Tensor x) const {
  Recorder& r = f.r;
  Parameter weight = module.weight, bias = *module.bias;
  weight.value = r.add_scalar(module.weight.value, "1 + norm weight");
  // _cast_if_autocast_enabled: its copies are nobody's, autocast does not cache them.
  const auto narrow = [&](const Tensor& given) {
    return r.autocast() && given.dtype() == DType::fp32 ? r.cast(given, *r.autocast()) : given;
  };
  Tensor input = narrow(x);
  weight.value = narrow(weight.value);
  bias.value = narrow(bias.value);
  r.pause_autocast();
  Tensor output = r.layer_norm(std::move(input), weight, &bias);
  r.resume_autocast();
  return output;
}

void NemotronArchitecture::rotate(Forward& f, const LayerContext&, const LayerInputs& inputs, Heads& heads) const {
  rotate_part_together(f, inputs, heads);
}

}  // namespace membill
