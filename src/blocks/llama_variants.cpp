#include "blocks/llama_variants.h"

#include "blocks/own_rotary.h"

namespace membill {

Tensor SeedOssArchitecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  return f.r.dropout(LlamaArchitecture::mlp(f, layer, hidden), f.hidden_dropout);
}

Exaone4Architecture::NormNames Exaone4Architecture::norm_names() const {
  return {nullptr, "post_attention_layernorm", nullptr, "post_feedforward_layernorm"};
}

Heads Exaone4Architecture::project(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  Heads heads = project_plain(f, layer, hidden);
  heads.q = norm(f, layer.modules.at("self_attn.q_norm"), heads.q);
  heads.k = norm(f, layer.modules.at("self_attn.k_norm"), heads.k);
  return heads;
}

void Ernie45Architecture::rotate(Forward& f, const LayerContext&, const LayerInputs& inputs, Heads& heads) const {
  rotate_neighbours_in_fp32(f, inputs, heads);
}

}  // namespace membill
