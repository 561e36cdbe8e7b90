#include "blocks/llama.h"

#include <algorithm>

#include "blocks/attention.h"
#include "blocks/key_cache.h"
#include "blocks/layer_norm_parts.h"
#include "blocks/sequence_spread.h"

namespace membill {
namespace {

const LayerKind* first_kind(const ModelSpec& model, bool sliding) {
  for (const Section& section : model.sections)
    for (const LayerKind& kind : section.kinds)
      if (kind.attention.heads > 0 && kind.attention.sliding_window.has_value() == sliding) return &kind;
  return nullptr;
}

// masking_utils.py: eager gets an additive mask in the working type, SDPA a boolean one, rows b·s (batch 1 without a padding mask); flash
// attention's package the padding mask itself.
Tensor make_mask(Forward& f, const LayerKind& kind) {
  if (f.batch_mask.defined()) return f.batch_mask;
  Recorder& r = f.r;
  const bool grad = r.grad_enabled();
  r.set_grad_enabled(false);
  Tensor mask;
  const Size rows = f.plan.attention_mask || f.plan.attention == AttentionKernel::eager ? f.dims.N : f.dims.s;
  if (f.plan.attention == AttentionKernel::eager) {
    const Size seen = f.plan.attention_mask ? f.dims.N : f.dims.s;
    const Tensor allowed = r.empty({seen, f.keys()}, DType::boolean, "causal mask, boolean");
    mask = r.empty({rows, f.keys()}, f.stream, "causal mask");
  } else if (f.unpads()) {
    mask = r.empty({f.dims.N, Size(1)}, DType::boolean, "padding mask, boolean");
  } else if (needs_mask(f, kind)) {
    mask = r.empty({rows, f.keys()}, DType::boolean, "causal mask, boolean");
  }
  r.set_grad_enabled(grad);
  return mask;
}

}  // namespace

bool needs_mask(const Forward& f, const LayerKind& kind) {
  const bool prefixed = f.cache != nullptr && !f.dims.past.is_zero();
  if (f.plan.attention_mask || f.plan.attention == AttentionKernel::eager || f.joins_documents() || prefixed)
    return true;
  return kind.attention.sliding_window && f.r.symbols().at_least(f.dims.s, *kind.attention.sliding_window);
}

const Size& rotary_columns(const Forward& f) {
  const std::vector<KindDims>& kinds = f.dims.kinds.at(1);
  const auto rotating =
      std::find_if(kinds.begin(), kinds.end(), [](const KindDims& kind) { return !kind.rotary.is_zero(); });
  return rotating == kinds.end() ? kinds.at(0).rotary : rotating->rotary;
}

void make_masks(Forward& f, LayerInputs& inputs) {
  if (const LayerKind* kind = first_kind(f.model, false)) inputs.mask = make_mask(f, *kind);
  if (const LayerKind* kind = first_kind(f.model, true)) inputs.local_mask = make_mask(f, *kind);
}

LayerInputs inputs_without_rotary(Forward& f) {
  LayerInputs inputs;
  inputs.position_ids = position_ids(f);
  make_masks(f, inputs);
  return inputs;
}

LayerInputs LlamaArchitecture::prepare(Forward& f, const Modules&, const Tensor& hidden) const {
  LayerInputs inputs;
  const Size& positions = brings_positions(f.plan) ? f.dims.N : f.dims.s;
  inputs.position_ids =
      f.position_ids.defined() ? f.position_ids : f.r.empty({positions, Size(1)}, DType::int64, "position ids");
  make_masks(f, inputs);
  RotaryTables tables = rotary_tables(f, rotary_columns(f), rotary_type(hidden.dtype()));
  inputs.cos = std::move(tables.cos);
  inputs.sin = std::move(tables.sin);
  return inputs;
}

LlamaArchitecture::NormNames LlamaArchitecture::norm_names() const {
  return {"input_layernorm", nullptr, "post_attention_layernorm", nullptr};
}

LlamaArchitecture::AttentionNames LlamaArchitecture::attention_names() const {
  return {"self_attn.o_proj", "self_attn.q_norm", "self_attn.k_norm"};
}

Tensor LlamaArchitecture::norm(Forward& f, Module& module, Tensor x) const {
  return llama_rms_norm(f, module, std::move(x));
}

bool LlamaArchitecture::rotates_by_kernel(const Forward&) const { return false; }

// Otherwise rotation takes the halves of each head apart.
Tensor LlamaArchitecture::seen_to_rotate(Forward& f, const KindDims& dims, const Tensor& x, const Size& heads,
                                         bool copied) const {
  const bool rotates = !dims.rotary.is_zero();
  if (rotates && rotates_by_kernel(f)) return f.r.view(x, {f.dims.N * heads, dims.d});
  return seen_as_heads(f, x, heads, dims.d, rotates || copied);
}

Heads LlamaArchitecture::project(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  const KindDims& dims = layer.dims;
  if (!layer.kind.attention.qk_norm) return project_plain(f, layer, hidden, true);
  const auto make = [&](const char* name) { return apply_linear(f, layer.modules.at(name), hidden); };
  const bool turned = turns_keys(f, layer.kind);
  const AttentionNames names = attention_names();
  Heads heads;
  heads.q = norm(f, layer.modules.at(names.q_norm), seen_to_rotate(f, dims, make("self_attn.q_proj"), dims.a, false));
  heads.k = norm(f, layer.modules.at(names.k_norm), seen_to_rotate(f, dims, make("self_attn.k_proj"), dims.k, turned));
  heads.v = seen_as_heads(f, make("self_attn.v_proj"), dims.k, dims.v, turned);
  return heads;
}

Heads LlamaArchitecture::project_plain(Forward& f, const LayerContext& layer, const Tensor& hidden, bool turns) const {
  const KindDims& dims = layer.dims;
  const auto make = [&](const char* name, const Size& heads, bool turned) {
    const Tensor x = apply_linear(f, layer.modules.at(name), hidden);
    return turns ? seen_to_rotate(f, dims, x, heads, turned) : seen_as_heads(f, x, heads, dims.d, turned);
  };
  const bool turned = turns_keys(f, layer.kind);
  Heads heads;
  heads.q = make("self_attn.q_proj", dims.a, false);
  heads.k = make("self_attn.k_proj", dims.k, turned);
  heads.v = seen_as_heads(f, apply_linear(f, layer.modules.at("self_attn.v_proj"), hidden), dims.k, dims.v, turned);
  return heads;
}

Heads LlamaArchitecture::project_then_norm(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  Heads heads = project_plain(f, layer, hidden, true);
  if (!layer.kind.attention.qk_norm) return heads;
  heads.q = norm(f, layer.modules.at("self_attn.q_norm"), heads.q);
  heads.k = norm(f, layer.modules.at("self_attn.k_norm"), heads.k);
  return heads;
}

Heads LlamaArchitecture::project_with_whole_norms(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  const KindDims& dims = layer.dims;
  const Modules& modules = layer.modules;
  Heads heads;
  heads.q = norm(f, modules.at("self_attn.q_norm"), apply_linear(f, modules.at("self_attn.q_proj"), hidden));
  heads.k = norm(f, modules.at("self_attn.k_norm"), apply_linear(f, modules.at("self_attn.k_proj"), hidden));
  heads.v = apply_linear(f, modules.at("self_attn.v_proj"), hidden);
  heads.q = seen_to_rotate(f, dims, heads.q, dims.a, false);
  heads.k = seen_to_rotate(f, dims, heads.k, dims.k, false);
  heads.v = seen_as_heads(f, heads.v, dims.k, dims.v);
  return heads;
}

void LlamaArchitecture::rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const {
  if (layer.dims.rotary.is_zero()) return;
  Tensor q = apply_rotary(f, heads.q, inputs.cos, inputs.sin);
  Tensor k = apply_rotary(f, heads.k, inputs.cos, inputs.sin);
  heads.q = std::move(q);
  heads.k = std::move(k);
}

Tensor LlamaArchitecture::attention(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                    const LayerInputs& inputs, Tensor& weights) const {
  Heads heads = project(f, layer, hidden);
  rotate(f, layer, inputs, heads);
  const AttentionShape& shape = layer.kind.attention;
  const Tensor& mask = shape.sliding_window ? inputs.local_mask : inputs.mask;
  AttentionCall call{layer.dims, shape, choose_attention(f, layer.kind, mask.defined()), mask, heads.contiguous};
  call.weights = &weights;
  if (f.cache != nullptr) f.cache->extend(call, heads.k, heads.v);
  Tensor output = run_attention(f, call, heads.q, heads.k, heads.v);
  output = apply_linear(f, layer.modules.at(attention_names().output), std::move(output));
  heads.q.drop(), heads.k.drop(),
      heads.v.drop();  // Python lets go of variables in the order of their names in the code
  return output;
}

Tensor LlamaArchitecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  return gated_mlp(f, layer.modules, "mlp.", layer.kind.mlp.activation, hidden);
}

Tensor LlamaArchitecture::feed_forward(Forward& f, const LayerContext& layer, Tensor hidden, const Tensor&) const {
  return mlp(f, layer, hidden);
}

Tensor LlamaArchitecture::branch(Forward&, const Tensor& output) const { return output; }

Tensor LlamaArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden, const LayerInputs& inputs) const {
  const NormNames names = norm_names();
  const auto pass_norm = [&](const char* name) {
    if (name != nullptr) hidden = norm(f, layer.modules.at(name), hidden);
  };
  Tensor residual = hidden, weights;
  pass_norm(names.before_attention);
  hidden = attention(f, layer, hidden, inputs, weights);
  const Tensor held = holds_attention_output() ? hidden : Tensor();
  pass_norm(names.after_attention);
  hidden = f.r.add(residual, branch(f, hidden), "residual stream");
  residual = hidden;
  pass_norm(names.before_mlp);
  hidden = feed_forward(f, layer, std::move(hidden), residual);
  pass_norm(names.after_mlp);
  const ItemScope scope(f.r, f.items.boundary);
  hidden = f.r.add(residual, branch(f, hidden), "layer output");
  return hidden;
}

Tensor LlamaArchitecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  return norm(f, outer.at("model.norm"), std::move(hidden));
}

}  // namespace membill
