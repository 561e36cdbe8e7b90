#include "blocks/gemma.h"

#include "blocks/attention.h"
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
  Heads heads = project_plain(f, layer, hidden, true);
  heads.q = norm(f, layer.modules.at("self_attn.q_norm"), heads.q);
  heads.k = norm(f, layer.modules.at("self_attn.k_norm"), heads.k);
  return heads;
}

void Gemma3Architecture::rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const {
  LlamaArchitecture::rotate(f, layer, tables_of(layer, inputs), heads);
}

Tensor Gemma4Architecture::norm(Forward& f, Module& module, Tensor x) const {
  return gemma4_rms_norm(f, &module, std::move(x));
}

Tensor Gemma4Architecture::attention(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                     const LayerInputs& inputs, Tensor& weights) const {
  const KindDims& dims = layer.dims;
  const AttentionShape& shape = layer.kind.attention;
  const auto project = [&](const char* name, const Size& heads, bool turns) {
    return seen_as_heads(f, apply_linear(f, layer.modules.at(name), hidden), heads, dims.d, turns);
  };
  const LayerInputs tables = tables_of(layer, inputs);
  f.r.watch_history(false);
  Tensor q = project("self_attn.q_proj", dims.a, true);
  q = norm(f, layer.modules.at("self_attn.q_norm"), q);
  q = apply_rotary(f, q, tables.cos, tables.sin);
  f.r.watch_history(shape.shares_keys);
  Tensor k = project("self_attn.k_proj", dims.k, true);
  Tensor v = layer.modules.find("self_attn.v_proj") != nullptr ? project("self_attn.v_proj", dims.k, false) : k;
  k = norm(f, layer.modules.at("self_attn.k_norm"), k);
  k = apply_rotary(f, k, tables.cos, tables.sin);
  v = gemma4_rms_norm(f, nullptr, v);
  f.r.watch_history(false);
  if (shape.shares_keys) f.r.hold_shared(shape.sliding_window ? 1 : 0, {k, v});
  const Tensor& mask = shape.sliding_window ? inputs.local_mask : inputs.mask;
  AttentionCall call{dims, shape, choose_attention(f, layer.kind, mask.defined()), mask};
  call.weights = &weights;
  Tensor output = run_attention(f, call, q, k, v);
  output = apply_linear(f, layer.modules.at("self_attn.o_proj"), std::move(output));
  k.drop(), q.drop(), v.drop();
  return output;
}

namespace {

// x *= a buffer of one element, which the node saves: a recomputation begins with it and runs to it.
Tensor scaled_by_buffer(Recorder& r, const Tensor& x) {
  Tensor out = r.view(x, x.shape());
  if (!r.needs_node({&x})) return out;
  Tensor kept = r.saved(r.placeholder({Size(1), Size(1)}, x.dtype()));
  r.record({&out}, {r.edge(x)}, [kept, shape = x.shape(), type = x.dtype()](Recorder& rec, Gradients&) {
    return Gradients{rec.empty(shape, type, "scaled gradient")};
  });
  return out;
}

}  // namespace

Tensor Gemma4Architecture::layer(Forward& f, const LayerContext& layer, Tensor hidden,
                                 const LayerInputs& inputs) const {
  f.r.watch_history(layer.kind.attention.shares_keys);
  return scaled_by_buffer(f.r, Gemma3Architecture::layer(f, layer, std::move(hidden), inputs));
}

}  // namespace membill
