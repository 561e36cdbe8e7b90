#include "blocks/falcon.h"

#include "blocks/layer_norm_parts.h"
#include "blocks/layers.h"

namespace membill {
namespace {

struct FalconHeads {
  Tensor q, k, v;
};

// FalconLinear: input @ weight.T.
Tensor falcon_linear(Forward& f, Module& module, const Tensor& x) {
  module.weight.seen_as_view = true;
  return apply_linear(f, module, x);
}

Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& x) {
  Tensor hidden = activation(f, layer.kind.mlp.activation, falcon_linear(f, layer.modules.at("mlp.dense_h_to_4h"), x));
  return falcon_linear(f, layer.modules.at("mlp.dense_4h_to_h"), hidden);
}

bool grouped(const LayerContext& layer) {
  const AttentionShape& shape = layer.kind.attention;
  return layer.modules.find("ln_attn") != nullptr || (shape.kv_heads > 1 && shape.kv_heads < shape.heads);
}

// Indexing with a list: a copy that keeps its index; the gradient is scattered into zeros of the whole.
Tensor pick(Forward& f, const Tensor& fused, const Shape& shape) {
  Recorder& r = f.r;
  const bool node = r.needs_node({&fused});
  const Tensor index = r.empty({Size(1), Size(1)}, DType::int64, "index of a head");
  const Tensor kept = node ? r.saved(index) : Tensor();
  Tensor out = r.empty(shape, fused.dtype(), "picked heads");
  if (node)
    r.record({&out}, {r.edge(fused)}, [kept, whole = fused.shape(), type = fused.dtype()](Recorder& rec, Gradients&) {
      return Gradients{rec.empty(whole, type, "gradient of picked heads, zero-filled")};
    });
  return out;
}

// _split_heads: the new architecture copies keys and values once for each query head.
FalconHeads split_heads(Forward& f, const LayerContext& layer, const Tensor& fused) {
  Recorder& r = f.r;
  const KindDims& dims = layer.dims;
  const Shape all{f.dims.N * dims.a, dims.d}, groups{f.dims.N * dims.k, dims.d};
  if (layer.kind.attention.kv_heads == layer.kind.attention.heads && !grouped(layer)) {
    const Tensor heads = r.view(fused, {f.dims.N * dims.a, Size(3) * dims.d});
    Tensor q = r.slice(heads, dims.d), k = r.slice(heads, dims.d);
    return {std::move(q), std::move(k), r.slice(heads, dims.d)};
  }
  const Tensor rows = r.view(fused, {f.dims.N, (dims.a + Size(2) * dims.k) * dims.d});
  Tensor q = r.view(r.slice(rows, dims.a * dims.d), all);
  Tensor k = pick(f, rows, groups), v = pick(f, rows, groups);
  if (!grouped(layer)) return {std::move(q), std::move(k), std::move(v)};
  q = r.contiguous_copy(q, all, "queries of all groups");
  k = r.contiguous_copy(k, all, "keys of all heads");
  v = r.contiguous_copy(v, all, "values of all heads");
  return {std::move(q), std::move(k), std::move(v)};
}

// x of (b, heads, s, d) as matmul takes it for every query head: a copy for more than one row of the batch.
Tensor batch_of_heads(Forward& f, const LayerContext& layer, const Tensor& x) {
  const Shape shape{f.dims.N * layer.dims.a, layer.dims.d};
  if (!f.one_row()) return f.r.contiguous_copy(x, shape, "contiguous heads");
  return f.r.broadcast_view(x, shape);
}

Tensor eager_attention(Forward& f, const LayerContext& layer, const FalconHeads& heads, const LayerInputs& inputs,
                       DType softmax_type, Tensor& scores) {
  Recorder& r = f.r;
  const Shape square{f.dims.N * layer.dims.a, f.dims.s};
  Tensor q = batch_of_heads(f, layer, r.autocast_input(heads.q));
  Tensor k = batch_of_heads(f, layer, r.autocast_input(heads.k));
  scores = r.batched_matmul(std::move(q), std::move(k), square, "attention scores");
  scores = r.scale_in_place(std::move(scores));
  Tensor masked = r.add(scores, inputs.mask, "masked scores");
  scores = r.softmax(std::move(masked), softmax_type);
  Tensor weights = r.autocast_input(scores);
  Tensor v = batch_of_heads(f, layer, r.autocast_input(heads.v));
  const Tensor output = heads_first_gradient(
      f,
      r.batched_matmul(std::move(weights), std::move(v), {f.dims.N * layer.dims.a, layer.dims.d}, "attention output"));
  return r.contiguous_copy(output, {f.dims.N, layer.dims.a * layer.dims.d}, "attention output, heads last");
}

Tensor falcon_attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs,
                        Tensor& scores) {
  const Tensor fused = falcon_linear(f, layer.modules.at("self_attention.query_key_value"), hidden);
  FalconHeads heads = split_heads(f, layer, fused);
  Tensor q = apply_rotary(f, heads.q, inputs.cos, inputs.sin);
  Tensor k = apply_rotary(f, heads.k, inputs.cos, inputs.sin);
  heads.q = std::move(q);
  heads.k = std::move(k);
  Tensor output;
  if (f.plan.attention == AttentionKernel::eager) {
    output = eager_attention(f, layer, heads, inputs, hidden.dtype(), scores);
  } else {
    AttentionShape shape = layer.kind.attention;
    KindDims dims = layer.dims;
    if (grouped(layer)) shape.kv_heads = shape.heads, dims.k = dims.a;
    AttentionCall call{dims, shape, choose_attention(f, layer.kind, true, true), inputs.mask};
    call.bare = true;
    output = run_attention(f, call, heads.q, heads.k, heads.v);
  }
  return falcon_linear(f, layer.modules.at("self_attention.dense"), output);
}

}  // namespace

// create_causal_mask may not skip the mask here: SDPA gets a boolean one, one row of the batch.
LayerInputs FalconArchitecture::prepare(Forward& f, const Modules&, const Tensor& hidden) const {
  LayerInputs inputs = rotary_inputs(f, f.dims.kinds.at(1).at(0).d, hidden);
  if (!inputs.mask.defined()) inputs.mask = f.r.empty({f.dims.s, f.dims.s}, DType::boolean, "causal mask, boolean");
  return inputs;
}

Tensor FalconArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden,
                                 const LayerInputs& inputs) const {
  Recorder& r = f.r;
  Modules& modules = layer.modules;
  Module* attention_norm = modules.find("ln_attn");
  Module* after_attention = modules.find("post_attention_layernorm");
  Tensor residual = hidden, mlp_input, scores;
  const Tensor normed =
      layer_norm(f, attention_norm != nullptr ? *attention_norm : modules.at("input_layernorm"), hidden);
  if (attention_norm != nullptr) mlp_input = layer_norm(f, modules.at("ln_mlp"), hidden);
  const Tensor attended = falcon_attention(f, layer, normed, inputs, scores);
  if (after_attention != nullptr) {
    residual = r.add(residual, r.dropout(attended, f.attention_dropout), "residual stream");
    mlp_input = layer_norm(f, *after_attention, residual);
  } else if (attention_norm == nullptr) {
    mlp_input = normed;
  }
  Tensor forwarded = mlp(f, layer, mlp_input);
  if (after_attention == nullptr) forwarded = r.add_in_place(std::move(forwarded), attended);
  const ItemScope scope(r, f.items.boundary);
  const Tensor dropped = r.dropout(forwarded, f.hidden_dropout);
  Tensor output = r.add(residual, dropped, "layer output");
  f.second_output = std::move(scores);
  return output;
}

Tensor FalconArchitecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  return layer_norm(f, outer.at("transformer.ln_f"), std::move(hidden));
}

}  // namespace membill
