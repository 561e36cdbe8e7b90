#include "blocks/llama.h"

#include "blocks/attention.h"
#include "blocks/layers.h"

namespace membill {
namespace {

const LayerKind* first_kind(const ModelSpec& model, bool sliding) {
  for (const Section& section : model.sections)
    for (const LayerKind& kind : section.kinds)
      if (kind.attention.heads > 0 && kind.attention.sliding_window.has_value() == sliding) return &kind;
  return nullptr;
}

// masking_utils.py: eager gets an additive mask in the working type, SDPA a boolean one; rows b·s (batch 1 without a padding mask).
Tensor make_mask(Forward& f, const LayerKind& kind) {
  Recorder& r = f.r;
  const bool grad = r.grad_enabled();
  r.set_grad_enabled(false);
  Tensor mask;
  const Size rows = f.plan.attention_mask || f.plan.attention == AttentionKernel::eager ? f.dims.N : f.dims.s;
  if (f.plan.attention == AttentionKernel::eager) {
    const Tensor allowed = r.empty({rows, f.dims.s}, DType::boolean, "causal mask, boolean");
    mask = r.empty({rows, f.dims.s}, f.stream, "causal mask");
  } else if (needs_mask(f, kind)) {
    mask = r.empty({rows, f.dims.s}, DType::boolean, "causal mask, boolean");
  }
  r.set_grad_enabled(grad);
  return mask;
}

}  // namespace

bool needs_mask(const Forward& f, const LayerKind& kind) {
  if (f.plan.attention_mask || f.plan.attention == AttentionKernel::eager) return true;
  return kind.attention.sliding_window && f.plan.seq >= *kind.attention.sliding_window;
}

void make_masks(Forward& f, LayerInputs& inputs) {
  if (const LayerKind* kind = first_kind(f.model, false)) inputs.mask = make_mask(f, *kind);
  if (const LayerKind* kind = first_kind(f.model, true)) inputs.local_mask = make_mask(f, *kind);
}

LayerInputs LlamaArchitecture::prepare(Forward& f, const Modules&, const Tensor& hidden) const {
  LayerInputs inputs;
  inputs.position_ids = f.r.empty({f.dims.s, Size(1)}, DType::int64, "position ids");
  make_masks(f, inputs);
  RotaryTables tables = rotary_tables(f, f.dims.kinds.at(1).at(0).rotary, hidden.dtype());
  inputs.cos = std::move(tables.cos);
  inputs.sin = std::move(tables.sin);
  return inputs;
}

Tensor LlamaArchitecture::norm(Forward& f, Module& module, Tensor x) const { return llama_rms_norm(f, module, std::move(x)); }

Tensor LlamaArchitecture::attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs) const {
  const KindDims& dims = layer.dims;
  const AttentionShape& shape = layer.kind.attention;
  const auto project = [&](const char* name, const Size& heads, const Size& width) {
    return f.r.view(apply_linear(f, layer.modules.at(name), hidden), {f.dims.N * heads, width});
  };
  Tensor q = project("self_attn.q_proj", dims.a, dims.d);
  if (shape.qk_norm) q = norm(f, layer.modules.at("self_attn.q_norm"), std::move(q));
  Tensor k = project("self_attn.k_proj", dims.k, dims.d);
  if (shape.qk_norm) k = norm(f, layer.modules.at("self_attn.k_norm"), std::move(k));
  Tensor v = project("self_attn.v_proj", dims.k, dims.v);
  Tensor q_rotated = apply_rotary(f, q, inputs.cos, inputs.sin);
  Tensor k_rotated = apply_rotary(f, k, inputs.cos, inputs.sin);
  q = std::move(q_rotated);
  k = std::move(k_rotated);
  const Tensor& mask = shape.sliding_window ? inputs.local_mask : inputs.mask;
  const AttentionCall call{dims, shape, choose_attention(f, layer.kind, mask.defined()), mask};
  Tensor output = run_attention(f, call, q, k, v);
  return apply_linear(f, layer.modules.at("self_attn.o_proj"), std::move(output));
}

Tensor LlamaArchitecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  return gated_mlp(f, layer.modules, "mlp.", layer.kind.mlp.activation, hidden);
}

Tensor LlamaArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden, const LayerInputs& inputs) const {
  Tensor residual = hidden;
  hidden = norm(f, layer.modules.at("input_layernorm"), hidden);
  hidden = attention(f, layer, hidden, inputs);
  hidden = f.r.add(residual, hidden, "residual stream");
  residual = hidden;
  hidden = norm(f, layer.modules.at("post_attention_layernorm"), hidden);
  hidden = mlp(f, layer, hidden);
  const ItemScope scope(f.r, f.items.boundary);
  return f.r.add(residual, hidden, "layer output");
}

Tensor LlamaArchitecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  return norm(f, outer.at("model.norm"), std::move(hidden));
}

}  // namespace membill
