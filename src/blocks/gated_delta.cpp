#include "blocks/gated_delta.h"

#include "blocks/channel_convolution.h"
#include "blocks/delta_rule.h"
#include "blocks/key_cache.h"
#include "blocks/layers.h"

namespace membill {
namespace {

constexpr const char* kPrefix = "linear_attn.";

Module& part(const LayerContext& layer, const char* name) { return layer.modules.at(std::string(kPrefix) + name); }

// What goes into the convolution, and what gates the output, the update and the decay.
struct Projected {
  Tensor fused, fused_gates;  // qwen3_next's two projections, which live as long as their views
  Tensor mixed, z, b, a;
};

bool is_even(const LayerContext& layer) {
  return layer.kind.linear_attention->key_heads == layer.kind.linear_attention->value_heads;
}

// x.reshape() of a part of each key head's columns: a copy where several value heads share a key head.
Tensor regrouped(Forward& f, const LayerContext& layer, const Tensor& x, const Shape& shape) {
  return is_even(layer) ? f.r.view(x, shape) : f.r.contiguous_copy(x, shape, "value heads together");
}

// fix_query_key_value_ordering, and queries, keys and values joined again.
Projected project_fused(Forward& f, const LayerContext& layer, const Tensor& hidden) {
  Recorder& r = f.r;
  const LinearDims& d = layer.dims.linear;
  const Size groups = f.dims.N * d.key_heads, heads = f.dims.N * d.value_heads;
  Projected p;
  p.fused = apply_linear(f, part(layer, "in_proj_qkvz"), hidden);
  p.fused_gates = apply_linear(f, part(layer, "in_proj_ba"), hidden);
  const std::int64_t share = layer.kind.linear_attention->value_heads / layer.kind.linear_attention->key_heads;
  const Shape keys{groups, d.key_width}, values{groups, Size(share) * d.value_width}, gates{groups, Size(share)};
  std::vector<Tensor> parts = r.split(p.fused, {keys, keys, values, values});
  auto [b, a] = r.split_in_two(p.fused_gates, gates);
  Tensor value = regrouped(f, layer, parts[2], {heads, d.value_width});
  p.z = regrouped(f, layer, parts[3], {heads, d.value_width});
  p.b = regrouped(f, layer, b, {f.dims.N, d.value_heads});
  p.a = regrouped(f, layer, a, {f.dims.N, d.value_heads});
  const auto rows_of = [&](const Tensor& x, const char* label) {
    return r.contiguous_copy(x, {f.dims.N, d.key_heads * d.key_width}, label);
  };
  const Tensor query = rows_of(parts[0], "queries together"), key = rows_of(parts[1], "keys together");
  const Shape all_values{f.dims.N, d.value_heads * d.value_width};
  value = is_even(layer) ? r.contiguous_copy(value, all_values, "values together") : r.view(value, all_values);
  p.mixed = r.join({query, key, value}, {f.dims.N, query.width() + key.width() + value.width()});
  return p;
}

Projected project_apart(Forward& f, const LayerContext& layer, const Tensor& hidden) {
  const LinearDims& d = layer.dims.linear;
  Projected p;
  p.mixed = projected_channels_first(f, part(layer, "in_proj_qkv"), hidden);
  p.z = f.r.view(apply_linear(f, part(layer, "in_proj_z"), hidden), {f.dims.N * d.value_heads, d.value_width});
  p.b = apply_linear(f, part(layer, "in_proj_b"), hidden);
  p.a = apply_linear(f, part(layer, "in_proj_a"), hidden);
  return p;
}

// -A_log.float().exp() * softplus(a.float() + dt_bias)
Tensor decay(Forward& f, const LayerContext& layer, const Tensor& a) {
  Recorder& r = f.r;
  const Tensor rate = r.neg(r.exp(r.cast(part(layer, "A_log").weight.value, DType::fp32)));
  const Tensor step = r.softplus(r.add(r.cast(a, DType::fp32), part(layer, "dt_bias").weight.value, "time step"));
  return r.mul(rate, step, "decay");
}

// RMSNormGated: the norm in fp32, its product with the gate's silu.
Tensor gated_norm(Forward& f, Module& module, const Tensor& x, const Tensor& gate) {
  Recorder& r = f.r;
  Tensor hidden = r.cast(x, DType::fp32);
  const Tensor variance = r.mean_of_rows(r.square(hidden));
  hidden = r.mul(hidden, r.rsqrt(r.add_scalar(variance)), "normalised");
  hidden = r.mul(module.weight.value, r.cast(hidden, x.dtype()), "norm output");
  hidden = r.mul(hidden, r.silu(r.cast(gate, DType::fp32)), "gated norm output");
  return r.cast(hidden, x.dtype());
}

// zeros_like(x).copy_(x): its history is x's.
Tensor copied(Recorder& r, const Tensor& x) {
  Tensor copy = r.empty(x.shape(), x.dtype(), "recurrent state of the cache");
  if (r.needs_node({&x}))
    r.record({&copy}, {r.edge(x)}, [](Recorder&, Gradients& g) { return Gradients{std::move(g[0])}; });
  return copy;
}

}  // namespace

Tensor gated_delta_net(Forward& f, const LayerContext& layer, const Tensor& hidden) {
  Recorder& r = f.r;
  const LinearDims& d = layer.dims.linear;
  const bool fused = layer.modules.find("linear_attn.in_proj_qkvz") != nullptr;
  Projected p = fused ? project_fused(f, layer, hidden) : project_apart(f, layer, hidden);
  if (f.cache != nullptr)
    f.cache->hold(r.empty({f.dims.b * d.kernel, p.mixed.width()}, p.mixed.dtype(), "convolution state of the cache"));
  p.mixed = causal_convolution(f, part(layer, "conv1d"), d.kernel, layer.kind.mlp.activation, p.mixed);
  if (f.cache != nullptr) p.mixed = part_of(f, p.mixed, p.mixed.shape(), "gradient of the new tokens, zero-filled");
  const Size keys = d.key_heads * d.key_width, values = d.value_heads * d.value_width;
  std::vector<Tensor> heads = r.split(p.mixed, {{f.dims.N, keys}, {f.dims.N, keys}, {f.dims.N, values}});
  // Gradients come with heads first and are copied, but where they are summed over repeated heads.
  const Shape key_rows{f.dims.N * d.key_heads, d.key_width};
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
    heads[i] = is_even(layer) ? viewed(r, heads[i], key_rows, "gradient, heads last") : r.view(heads[i], key_rows);
  heads[2] = viewed(r, heads[2], {f.dims.N * d.value_heads, d.value_width}, "gradient, heads last");
  const Tensor beta = r.sigmoid(p.b);
  const Tensor log_decay = decay(f, layer, p.a);
  Tensor state;
  Tensor output = chunked_delta_rule(f, layer, {heads[0], heads[1], heads[2], beta, log_decay},
                                     f.cache != nullptr ? &state : nullptr);
  if (state.defined()) f.cache->hold(copied(r, state));
  // What was cast lies token by token.
  if (const Shape shape = output.shape(); heads[2].dtype() == DType::fp32)
    output = r.contiguous_copy(std::move(output), shape, "output, heads last");
  output = gated_norm(f, part(layer, "norm"), output, p.z);
  output = r.view(std::move(output), {f.dims.N, values});
  return apply_linear(f, part(layer, "out_proj"), output);
}

}  // namespace membill
