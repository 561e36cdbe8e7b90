#include "blocks/gemma.h"

#include <algorithm>

#include "blocks/own_norms.h"

namespace membill {
namespace {

bool has_layers(const ModelSpec& model, bool sliding) {
  const std::vector<LayerKind>& kinds = model.sections.at(1).kinds;
  return std::any_of(kinds.begin(), kinds.end(),
                     [&](const LayerKind& kind) { return kind.attention.sliding_window.has_value() == sliding; });
}

}  // namespace

Tensor GemmaArchitecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  const Tensor embedded = embed_tokens(f, outer, ids);
  const Tensor scale = f.r.empty({Size(1), Size(1)}, DType::fp32, "embedding scale");
  return f.r.mul(embedded, f.r.cast(scale, embedded.dtype()), "scaled embedding");
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

Tensor GemmaArchitecture::norm(Forward& f, Module& module, Tensor x) const { return gemma_rms_norm(f, module, std::move(x)); }

Gemma2Architecture::NormNames Gemma2Architecture::norm_names() const {
  return {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"};
}

LayerInputs Gemma3Architecture::prepare(Forward& f, const Modules&, const Tensor& hidden) const {
  LayerInputs inputs;
  inputs.position_ids = f.r.empty({f.dims.s, Size(1)}, DType::int64, "position ids");
  make_masks(f, inputs);
  const Size& rotary = f.dims.kinds.at(1).at(0).rotary;
  if (has_layers(f.model, false)) {
    RotaryTables tables = rotary_tables(f, rotary, hidden.dtype());
    inputs.cos = std::move(tables.cos), inputs.sin = std::move(tables.sin);
  }
  if (has_layers(f.model, true)) {
    RotaryTables tables = rotary_tables(f, rotary, hidden.dtype());
    inputs.local_cos = std::move(tables.cos), inputs.local_sin = std::move(tables.sin);
  }
  return inputs;
}

Heads Gemma3Architecture::project(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  const KindDims& dims = layer.dims;
  const auto make = [&](const char* name, const Size& heads, const Size& width) {
    return f.r.view(apply_linear(f, layer.modules.at(name), hidden), {f.dims.N * heads, width});
  };
  Heads heads{make("self_attn.q_proj", dims.a, dims.d), make("self_attn.k_proj", dims.k, dims.d), make("self_attn.v_proj", dims.k, dims.v)};
  heads.q = norm(f, layer.modules.at("self_attn.q_norm"), heads.q);
  heads.k = norm(f, layer.modules.at("self_attn.k_norm"), heads.k);
  return heads;
}

void Gemma3Architecture::rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const {
  if (!layer.kind.attention.sliding_window) return LlamaArchitecture::rotate(f, layer, inputs, heads);
  LayerInputs local;
  local.cos = inputs.local_cos, local.sin = inputs.local_sin;
  LlamaArchitecture::rotate(f, layer, local, heads);
}

}  // namespace membill
