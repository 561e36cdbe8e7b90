#include "blocks/nemotron_h.h"

#include "blocks/attention.h"
#include "blocks/experts.h"
#include "blocks/key_cache.h"
#include "blocks/layer_norm_parts.h"
#include "blocks/layers.h"
#include "blocks/llama.h"
#include "blocks/mamba2.h"

namespace membill {
namespace {

// The product with the weight is made in fp32, too.
Tensor wide_rms_norm(Forward& f, Module& module, const Tensor& x) {
  Recorder& r = f.r;
  const Tensor in = r.cast(x, module.weight.value.dtype());
  Tensor hidden = r.cast(in, DType::fp32);
  const Tensor variance = r.mean_of_rows(r.square(hidden));
  hidden = r.mul(hidden, r.rsqrt(r.add_scalar(variance)), "normalised");
  return r.cast(r.mul(r.cast(module.weight.value, DType::fp32), hidden, "norm output in fp32"), in.dtype());
}

Tensor attend_without_positions(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs,
                                Tensor& weights) {
  const KindDims& dims = layer.dims;
  const bool turned = turns_keys(f, layer.kind);
  const auto project = [&](const char* name, const Size& heads, bool turns) {
    return seen_as_heads(f, apply_linear(f, layer.modules.at(name), hidden), heads, dims.d, turns);
  };
  Tensor q = project("mixer.q_proj", dims.a, false), k = project("mixer.k_proj", dims.k, turned),
         v = project("mixer.v_proj", dims.k, turned);
  AttentionCall call{dims, layer.kind.attention, choose_attention(f, layer.kind, inputs.mask.defined()), inputs.mask};
  call.weights = &weights;
  if (f.cache != nullptr) f.cache->extend(call, k, v);
  const Tensor output = run_attention(f, call, q, k, v);
  return apply_linear(f, layer.modules.at("mixer.o_proj"), output);
}

// Experts of two matrices, in a narrower space where the model has one, and an MLP that all tokens pass.
Tensor mix_experts(Forward& f, const LayerContext& layer, const Tensor& hidden) {
  Modules& modules = layer.modules;
  const Routing routing = route_by_sigmoid(f, layer, modules.at("mixer.gate"), true, hidden);
  Tensor states = hidden;
  const bool narrow = layer.kind.moe->latent > 0;
  if (narrow) states = apply_linear(f, modules.at("mixer.fc1_latent_proj"), states);
  states = run_experts(f, layer, "mixer.experts.", states, routing, {.gated = false});
  if (narrow) states = apply_linear(f, modules.at("mixer.fc2_latent_proj"), states);
  const PlainMlp shared{"mixer.shared_experts.up_proj", "mixer.shared_experts.down_proj", layer.kind.mlp.activation};
  return f.r.add(states, plain_mlp(f, modules, shared, hidden), "experts and shared experts");
}

Tensor mix(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs, Tensor& weights) {
  if (layer.kind.state_space) return mamba2_mixer(f, layer, "mixer.", hidden);
  if (layer.kind.moe) return mix_experts(f, layer, hidden);
  if (layer.kind.attention.heads > 0) return attend_without_positions(f, layer, hidden, inputs, weights);
  return plain_mlp(f, layer.modules, {"mixer.up_proj", "mixer.down_proj", layer.kind.mlp.activation}, hidden);
}

}  // namespace

LayerInputs NemotronHArchitecture::prepare(Forward& f, const Modules&, const Tensor&) const {
  return inputs_without_rotary(f);
}

Tensor NemotronHArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden,
                                    const LayerInputs& inputs) const {
  const Tensor residual = hidden;
  Tensor weights;
  hidden = wide_rms_norm(f, layer.modules.at("norm"), hidden);
  hidden = mix(f, layer, hidden, inputs, weights);
  const ItemScope scope(f.r, f.items.boundary);
  return f.r.add(residual, hidden, "layer output");
}

Tensor NemotronHArchitecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  return wide_rms_norm(f, outer.at("model.norm_f"), hidden);
}

Tensor NemotronHArchitecture::head(Forward& f, const Modules& outer, Tensor hidden) const {
  return f.r.cast(Architecture::head(f, outer, std::move(hidden)), DType::fp32);
}

}  // namespace membill
