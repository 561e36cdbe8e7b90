#include "blocks/falcon_h1.h"

#include "blocks/layers.h"
#include "blocks/mamba2.h"

namespace membill {

Tensor FalconH1Architecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  return f.r.mul_scalar(embed_tokens(f, outer, ids), "scaled embedding");
}

Heads FalconH1Architecture::project(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  const KindDims& dims = layer.dims;
  const auto make = [&](const char* name, const Size& heads, bool cut) {
    return seen_as_heads(f, apply_linear(f, layer.modules.at(name), hidden), heads, dims.d, cut);
  };
  Heads heads;
  heads.q = make("self_attn.q_proj", dims.a, true);
  heads.k = f.r.mul_scalar(make("self_attn.k_proj", dims.k, true), "scaled keys");
  heads.v = make("self_attn.v_proj", dims.k, false);
  return heads;
}

Tensor FalconH1Architecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  Recorder& r = f.r;
  const Modules& modules = layer.modules;
  Tensor product;
  {
    const Tensor up = apply_linear(f, modules.at("feed_forward.up_proj"), hidden);
    Tensor gate = r.mul_scalar(apply_linear(f, modules.at("feed_forward.gate_proj"), hidden), "scaled gate");
    gate = activation(f, layer.kind.mlp.activation, std::move(gate));
    product = r.mul(up, std::move(gate), "gated product");
  }
  return r.mul_scalar(apply_linear(f, modules.at("feed_forward.down_proj"), product), "scaled output of the MLP");
}

Tensor FalconH1Architecture::layer(Forward& f, const LayerContext& layer, Tensor hidden,
                                   const LayerInputs& inputs) const {
  Recorder& r = f.r;
  Tensor residual = hidden, weights;
  hidden = norm(f, layer.modules.at("input_layernorm"), hidden);
  const Mamba2Style style{.multiplied = true, .gate_after_norm = layer.kind.state_space->gate_after_norm};
  const Tensor spaced =
      r.mul_scalar(mamba2_mixer(f, layer, "mamba.", hidden, style), "scaled output of the state space");
  Tensor attended = attention(f, layer, r.mul_scalar(hidden, "scaled input of the attention"), inputs, weights);
  attended = r.mul_scalar(std::move(attended), "scaled output of the attention");
  hidden = r.add(spaced, attended, "state space and attention");
  hidden = r.add(residual, hidden, "residual stream");
  residual = hidden;
  hidden = norm(f, layer.modules.at("pre_ff_layernorm"), hidden);
  hidden = mlp(f, layer, hidden);
  const ItemScope scope(r, f.items.boundary);
  return r.add(residual, hidden, "layer output");
}

Tensor FalconH1Architecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  return norm(f, outer.at("model.final_layernorm"), std::move(hidden));
}

Tensor FalconH1Architecture::head(Forward& f, const Modules& outer, Tensor hidden) const {
  return f.r.mul_scalar(LlamaArchitecture::head(f, outer, std::move(hidden)), "scaled logits");
}

}  // namespace membill
