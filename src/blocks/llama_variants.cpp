#include "blocks/llama_variants.h"

#include "blocks/experts.h"
#include "blocks/key_cache.h"
#include "blocks/own_rotary.h"

namespace membill {

Tensor SeedOssArchitecture::attention(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                      const LayerInputs& inputs, Tensor& weights) const {
  return f.r.dropout(LlamaArchitecture::attention(f, layer, hidden, inputs, weights), f.hidden_dropout);
}

Tensor SeedOssArchitecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  return f.r.dropout(LlamaArchitecture::mlp(f, layer, hidden), f.hidden_dropout);
}

Exaone4Architecture::NormNames Exaone4Architecture::norm_names() const {
  return {nullptr, "post_attention_layernorm", nullptr, "post_feedforward_layernorm"};
}

Heads Exaone4Architecture::project(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  Heads heads = project_plain(f, layer, hidden, true);
  heads.q = norm(f, layer.modules.at("self_attn.q_norm"), heads.q);
  heads.k = norm(f, layer.modules.at("self_attn.k_norm"), heads.k);
  return heads;
}

void Ernie45Architecture::rotate(Forward& f, const LayerContext&, const LayerInputs& inputs, Heads& heads) const {
  rotate_neighbours_in_fp32(f, inputs, heads);
}

Tensor Ernie45MoeArchitecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  if (!layer.kind.moe) return LlamaArchitecture::mlp(f, layer, hidden);
  const bool shares = layer.kind.moe->shared_intermediate > 0;
  const Tensor shared =
      shares ? gated_mlp(f, layer.modules, "mlp.shared_experts.", layer.kind.mlp.activation, hidden) : Tensor();
  const Routing routing = route_without_autocast(f, layer, layer.modules.at("mlp.gate"), hidden);
  Tensor chosen = run_experts(f, layer, "mlp.experts.", hidden, routing);
  return shares ? f.r.add(chosen, shared, "experts and shared experts") : chosen;
}

Heads HunyuanArchitecture::project(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  return project_plain(f, layer, hidden, true);
}

void HunyuanArchitecture::rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const {
  LlamaArchitecture::rotate(f, layer, inputs, heads);
  heads.q = norm(f, layer.modules.at("self_attn.query_layernorm"), heads.q);
  heads.k = norm(f, layer.modules.at("self_attn.key_layernorm"), heads.k);
}

void Ministral3Architecture::rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs,
                                    Heads& heads) const {
  Recorder& r = f.r;
  LlamaArchitecture::rotate(f, layer, inputs, heads);
  const Shape line{f.dims.s, Size(1)};
  const Tensor wide = r.empty(line, DType::fp32, "scale of each place in fp32");
  heads.q = r.mul(heads.q, r.cast(wide, heads.q.dtype()), "scaled queries");
}

Heads Qwen2VlArchitecture::project(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  const KindDims& dims = layer.dims;
  const bool turned = turns_keys(f, layer.kind);
  Heads heads;
  heads.q = apply_linear(f, layer.modules.at("self_attn.q_proj"), hidden);
  heads.k = apply_linear(f, layer.modules.at("self_attn.k_proj"), hidden);
  heads.v = apply_linear(f, layer.modules.at("self_attn.v_proj"), hidden);
  heads.q = seen_to_rotate(f, dims, heads.q, dims.a, false);
  heads.k = seen_to_rotate(f, dims, heads.k, dims.k, turned);
  heads.v = seen_as_heads(f, heads.v, dims.k, dims.v, turned);
  return heads;
}

}  // namespace membill
