#include "blocks/llama4.h"

#include <tuple>

#include "blocks/attention.h"
#include "blocks/complex_rotary.h"

namespace membill {
namespace {

// x.float() * torch.rsqrt(...), back in x's type.
Tensor normalised(Forward& f, const Tensor& x) {
  Recorder& r = f.r;
  const Tensor wide = r.cast(x, DType::fp32);
  const Tensor scale = r.rsqrt(r.add_scalar(r.mean_of_rows(r.square(wide))));
  return r.cast(r.mul(wide, scale, "normalised"), x.dtype());
}

// Queries of a layer without positions, scaled by the logarithm of their place, in fp32 for the product.
Tensor tempered(Forward& f, const Tensor& q) {
  Recorder& r = f.r;
  const Tensor positions = r.empty({f.dims.s, Size(1)}, DType::int64, "positions");
  const Tensor scales = r.empty({f.dims.s, Size(1)}, DType::fp32, "attention scales");
  return r.cast(r.mul(q, scales, "scaled queries"), q.dtype());
}

struct Scores {
  Tensor scores, logits;
};

// Llama4Router: logits of the experts that were not chosen are minus infinity; a sigmoid in fp32.
Scores route(Forward& f, const LayerContext& layer, const Tensor& hidden) {
  Recorder& r = f.r;
  const Tensor logits = apply_linear(f, layer.modules.at("feed_forward.router"), hidden);
  const auto [values, indices] = r.top_of_rows(logits, layer.dims.top);
  Tensor scores = r.empty(logits.shape(), logits.dtype(), "scores of the chosen");
  const bool node = r.needs_node({&values});
  const Tensor kept = node ? r.saved(indices) : Tensor();
  if (node)
    r.record({&scores}, {r.edge(values)},
             [kept, shape = values.shape(), type = values.dtype()](Recorder& rec, Gradients&) {
               return Gradients{rec.empty(shape, type, "gradient of scattered scores")};
             });
  scores = r.cast(r.sigmoid(r.cast(scores, DType::fp32)), logits.dtype());
  return {std::move(scores), logits};
}

// torch.bmm with the matrices of all experts, which autocast casts once.
Tensor all_experts(Forward& f, const Tensor& x, Parameter& weight, const Size& width) {
  Recorder& r = f.r;
  const Tensor matrices = r.working_copy(weight, r.autocast().value_or(weight.value.dtype()));
  return r.batched_matmul(x, matrices, {x.rows(), width}, weight.label);
}

Tensor run_all(Forward& f, const LayerContext& layer, const Tensor& routed) {
  Recorder& r = f.r;
  const KindDims& dims = layer.dims;
  const Tensor both =
      all_experts(f, routed, layer.modules.at("feed_forward.experts.gate_up_proj").weight, Size(2) * dims.expert_width);
  const auto [gate, up] = r.split_in_two(both, {both.rows(), dims.expert_width});
  Tensor product = r.mul(up, activation(f, layer.kind.mlp.activation, gate), "gated product");
  return all_experts(f, product, layer.modules.at("feed_forward.experts.down_proj").weight, f.dims.h);
}

}  // namespace

LayerInputs Llama4Architecture::prepare(Forward& f, const Modules&, const Tensor&) const {
  LayerInputs inputs;
  inputs.position_ids = f.r.empty({f.dims.s, Size(1)}, DType::int64, "position ids");
  make_masks(f, inputs);
  if (inputs.local_mask.defined() && f.plan.attention != AttentionKernel::eager)
    inputs.local_mask = f.r.empty({f.dims.N, f.dims.s}, DType::boolean, "chunked mask, boolean");
  inputs.extra = complex_table(f, rotary_columns(f));
  return inputs;
}

Tensor Llama4Architecture::norm(Forward& f, Module& module, Tensor x) const {
  return f.r.mul(normalised(f, x), module.weight.value, "norm output");
}

Tensor Llama4Architecture::attention(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                     const LayerInputs& inputs, Tensor& weights) const {
  const AttentionShape& shape = layer.kind.attention;
  Heads heads = project_plain(f, layer, hidden);
  if (!layer.dims.rotary.is_zero()) std::tie(heads.q, heads.k) = rotate_both_complex(f, heads.q, heads.k, inputs.extra);
  if (shape.qk_norm) {
    heads.q = normalised(f, heads.q);
    heads.k = normalised(f, heads.k);
  }
  if (shape.tunes_temperature && layer.dims.rotary.is_zero()) heads.q = tempered(f, heads.q);
  const Tensor& mask = shape.sliding_window ? inputs.local_mask : inputs.mask;
  AttentionCall call{layer.dims, shape, choose_attention(f, layer.kind, mask.defined()), mask};
  call.native_softmax = call.keeps_softmax = true;
  call.weights = &weights;
  Tensor output = run_attention(f, call, heads.q, heads.k, heads.v);
  return apply_linear(f, layer.modules.at("self_attn.o_proj"), std::move(output));
}

Tensor Llama4Architecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  Recorder& r = f.r;
  const std::string& act = layer.kind.mlp.activation;
  if (!layer.kind.moe) return gated_mlp(f, layer.modules, "feed_forward.", act, hidden);
  const KindDims& dims = layer.dims;
  const Scores routing = route(f, layer, hidden);
  const Shape all{f.dims.N * dims.experts, f.dims.h};
  Tensor routed = r.contiguous_copy(hidden, all, "tokens of every expert");
  routed = r.mul(routed, r.contiguous_copy(routing.scores, {all.rows, Size(1)}, "scores by expert"), "weighed tokens");
  const Tensor computed = run_all(f, layer, routed);
  Tensor out = gated_mlp(f, layer.modules, "feed_forward.shared_expert.", act, hidden);
  return r.add_in_place(std::move(out), r.sum_of_parts(computed, f.dims.N));
}

}  // namespace membill
