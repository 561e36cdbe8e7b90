#include "blocks/gemma.h"

#include "blocks/own_norms.h"
#include "blocks/own_rotary.h"

namespace membill {
Tensor GemmaArchitecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  if (f.hooks != nullptr) f.hooks->before_embedding();
  const Tensor table_rows = apply_embedding(f, outer.at(embedding_name()), ids);
  const Tensor embedded = f.hooks != nullptr ? f.hooks->after_embedding(table_rows) : table_rows;
  const Tensor scale = f.r.empty({Size(1), Size(1)}, DType::fp32, "embedding scale");
  return made_to_need_gradient(f, f.r.mul(embedded, f.r.cast(scale, embedded.dtype()), "scaled embedding"));
}

Tensor GemmaArchitecture::head(Forward& f, const Modules& outer, Tensor hidden) const {
  Recorder& r = f.r;
  Tensor logits = Architecture::head(f, outer, hidden);
  if (!f.model.final_logit_softcap) return logits;
  logits = r.mul_scalar(logits, "logits over the cap");
  logits = r.tanh(logits);
  logits = r.mul_scalar(logits, "capped logits");
  return logits;
}

Tensor GemmaArchitecture::norm(Forward& f, Module& module, Tensor x) const {
  return gemma_rms_norm(f, module, std::move(x));
}

Gemma2Architecture::NormNames Gemma2Architecture::norm_names() const {
  return {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"};
}

LayerInputs Gemma3Architecture::prepare(Forward& f, const Modules&, const Tensor& hidden) const {
  return inputs_by_layer_type(f, hidden.dtype());
}

Heads Gemma3Architecture::project(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  Heads heads = project_plain(f, layer, hidden);
  heads.q = norm(f, layer.modules.at("self_attn.q_norm"), heads.q);
  heads.k = norm(f, layer.modules.at("self_attn.k_norm"), heads.k);
  return heads;
}

void Gemma3Architecture::rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const {
  LlamaArchitecture::rotate(f, layer, tables_of(layer, inputs), heads);
}

}  // namespace membill
