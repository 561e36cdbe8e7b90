#include "blocks/gptj.h"

#include "blocks/layer_norm_parts.h"
#include "blocks/layers.h"
#include "blocks/llama.h"

namespace membill {
namespace {

// apply_rotary_pos_emb: each call spreads the tables over pairs of neighbours.
Tensor rotate(Forward& f, const Tensor& x, const LayerInputs& inputs) {
  Recorder& r = f.r;
  const Tensor sin = r.empty({f.dims.s, x.width()}, inputs.sin.dtype(), "sin, each column twice");
  const Tensor cos = r.empty({f.dims.s, x.width()}, inputs.cos.dtype(), "cos, each column twice");
  return apply_rotary(f, x, cos, sin);
}

}  // namespace

Tensor GptJArchitecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  const Tensor tokens = embed_tokens(f, outer, ids);
  f.locals = {tokens};
  return f.r.dropout(tokens, f.embedding_dropout);
}

// The rows of the model's table of sines and cosines, in the type of `hidden`; both are views of one tensor.
LayerInputs GptJArchitecture::prepare(Forward& f, const Modules&, const Tensor& hidden) const {
  LayerInputs inputs;
  inputs.position_ids = position_ids(f);
  make_masks(f, inputs);
  const Size& rotary = f.dims.kinds.at(1).at(0).rotary;
  const Tensor rows = f.r.empty({f.dims.s, rotary}, DType::fp32, "sines and cosines");
  inputs.sin = has_wide_tables() ? rows : f.r.cast(rows, hidden.dtype());
  inputs.cos = inputs.sin;
  return inputs;
}

Tensor GptJArchitecture::attention(Forward& f, const LayerContext& layer, Projected made, const LayerInputs& inputs,
                                   Tensor& weights) const {
  Recorder& r = f.r;
  const KindDims& dims = layer.dims;
  const Shape heads{f.dims.N * dims.a, dims.d};
  Tensor q = std::move(made.q), k = std::move(made.k);
  const Tensor v = std::move(made.v);
  const Size rest = dims.d - dims.rotary;
  Tensor k_rotating = r.slice(k, dims.rotary);
  const Tensor k_rest = r.slice(k, rest);
  Tensor q_rotating = r.slice(q, dims.rotary);
  const Tensor q_rest = r.slice(q, rest);
  Tensor k_rotated = rotate(f, k_rotating, inputs);
  k_rotating = std::move(k_rotated);
  Tensor q_rotated = rotate(f, q_rotating, inputs);
  q_rotating = std::move(q_rotated);
  k = r.concatenate(k_rotating, k_rest, heads);
  q = r.concatenate(q_rotating, q_rest, heads);
  if (has_wide_tables()) {
    q = r.cast(q, v.dtype());
    k = r.cast(k, v.dtype());
  }
  AttentionCall call{dims, layer.kind.attention, choose_attention(f, layer.kind, inputs.mask.defined()), inputs.mask};
  call.native_softmax = call.wide_scores = true;
  call.weights = &weights;
  Tensor output = run_attention(f, call, q, k, v);
  output = apply_linear(f, layer.modules.at("attn.out_proj"), output);
  return r.dropout(output, f.hidden_dropout);
}

Tensor GptJArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden, const LayerInputs& inputs) const {
  Recorder& r = f.r;
  const Tensor residual = hidden;
  Tensor weights;
  hidden = layer_norm(f, layer.modules.at("ln_1"), hidden);
  const Tensor attended = attention(f, layer, project(f, layer, hidden), inputs, weights);
  Tensor forwarded = plain_mlp(f, layer.modules, {"mlp.fc_in", "mlp.fc_out", layer.kind.mlp.activation}, hidden);
  forwarded = r.dropout(forwarded, f.hidden_dropout);
  Tensor sum = r.add(attended, forwarded, "attention and MLP");
  const ItemScope scope(r, f.items.boundary);
  return r.add(std::move(sum), residual, "layer output");
}

GptJArchitecture::Projected GptJArchitecture::project(Forward& f, const LayerContext& layer,
                                                      const Tensor& hidden) const {
  const Shape heads{f.dims.N * layer.dims.a, layer.dims.d};
  const auto make = [&](const char* name) { return f.r.view(apply_linear(f, layer.modules.at(name), hidden), heads); };
  Projected made;
  made.q = make("attn.q_proj");
  made.k = make("attn.k_proj");
  made.v = seen_as_heads(f, apply_linear(f, layer.modules.at("attn.v_proj"), hidden), layer.dims.a, layer.dims.d);
  return made;
}

// One product in four parts, each with queries, values and keys of its heads: heads are put together by a copy unless a part has one.
GptJArchitecture::Projected CodeGenArchitecture::project(Forward& f, const LayerContext& layer,
                                                         const Tensor& hidden) const {
  constexpr std::int64_t kParts = 4;
  Recorder& r = f.r;
  const Shape heads{f.dims.N * layer.dims.a, layer.dims.d};
  Projected made;
  made.joined = apply_linear(f, layer.modules.at("attn.qkv_proj"), hidden);
  const auto parts = r.split_in_three(made.joined, heads);
  const auto arrange = [&](const Tensor& part) {
    return r.symbols().equal(layer.dims.a, Size(kParts)) ? part : r.contiguous_copy(part, heads, "heads of all parts");
  };
  made.q = arrange(parts[0]);
  made.k = arrange(parts[2]);
  made.v = arrange(parts[1]);
  return made;
}

Tensor GptJArchitecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  return layer_norm(f, outer.at("transformer.ln_f"), std::move(hidden));
}

}  // namespace membill
