#include "blocks/latent_attention.h"

#include <tuple>

#include "blocks/attention.h"
#include "blocks/complex_rotary.h"

namespace membill {
namespace {

Tensor latent_queries(Forward& f, const LayerContext& layer, const Tensor& hidden) {
  const Modules& modules = layer.modules;
  if (Module* whole = modules.find("self_attn.q_proj")) return apply_linear(f, *whole, hidden);
  Tensor latent = apply_linear(f, modules.at("self_attn.q_a_proj"), hidden);
  latent = llama_rms_norm(f, modules.at("self_attn.q_a_layernorm"), std::move(latent));
  return apply_linear(f, modules.at("self_attn.q_b_proj"), std::move(latent));
}

struct KeyValue {
  Tensor key, value;
};

// expand_kv: the key's two parts are copied into a new tensor, the rotated one to every head.
KeyValue expand(Forward& f, const LayerContext& layer, const Tensor& latent, const Tensor& rotated) {
  Recorder& r = f.r;
  const KindDims& dims = layer.dims;
  const Size heads = f.dims.N * dims.a, plain = dims.d - dims.rotary;
  const Tensor both = r.view(apply_linear(f, layer.modules.at("self_attn.kv_b_proj"), latent), {heads, plain + dims.v});
  const auto [key_part, value] = r.split_in_two(both, {heads, plain}, {heads, dims.v});
  const Tensor spread = r.broadcast_view(rotated, {heads, dims.rotary});
  Tensor key = r.empty({heads, dims.d}, both.dtype(), "keys");
  key = r.copy_into(std::move(key), key_part);
  key = r.copy_into(std::move(key), spread);
  return {std::move(key), value};
}

// x's even columns and its odd ones: q1·cos - q2·sin and q2·cos + q1·sin, concatenated.
Tensor rotate_pairs(Recorder& r, const Tensor& x, const LayerInputs& inputs) {
  const Size half = r.symbols().ceil_div(x.width(), Size(2));
  const Tensor cos = r.slice(inputs.cos, half), sin = r.slice(inputs.sin, half);
  const Tensor even = r.slice(x, half), odd = r.slice(x, half);
  Tensor first = r.sub(r.mul(even, cos), r.mul(odd, sin), "rotated, first half");
  Tensor second = r.add(r.mul(odd, cos), r.mul(even, sin), "rotated, second half");
  return r.concatenate(std::move(first), std::move(second), x.shape());
}

}  // namespace

std::pair<Tensor, Tensor> DeepseekV3Architecture::rotate_latent(Forward& f, const Tensor& q, const Tensor& k,
                                                                const LayerInputs& inputs) const {
  Tensor q_rotated = rotate_pairs(f.r, q, inputs);
  return {std::move(q_rotated), rotate_pairs(f.r, k, inputs)};
}

Tensor DeepseekV3Architecture::attention(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                         const LayerInputs& inputs, Tensor& weights) const {
  Recorder& r = f.r;
  const KindDims& dims = layer.dims;
  const Modules& modules = layer.modules;
  const Size heads = f.dims.N * dims.a;
  const Tensor q_states = r.view(latent_queries(f, layer, hidden), {heads, dims.d});
  auto [q_pass, q_rotating] = r.split_in_two(q_states, {heads, dims.d - dims.rotary}, {heads, dims.rotary});
  const Tensor compressed = apply_linear(f, modules.at("self_attn.kv_a_proj_with_mqa"), hidden);
  auto [latent, k_rotating] =
      r.split_in_two(compressed, {f.dims.N, compressed.width() - dims.rotary}, {f.dims.N, dims.rotary});
  latent = llama_rms_norm(f, modules.at("self_attn.kv_a_layernorm"), latent);
  std::tie(q_rotating, k_rotating) = rotate_latent(f, q_rotating, k_rotating, inputs);
  const Tensor q = r.concatenate(q_pass, q_rotating, {heads, dims.d});
  const KeyValue expanded = expand(f, layer, latent, k_rotating);
  AttentionCall call{dims, layer.kind.attention, choose_attention(f, layer.kind, inputs.mask.defined()), inputs.mask,
                     true};
  call.weights = &weights;
  Tensor output = run_attention(f, call, q, expanded.key, expanded.value);
  return apply_linear(f, modules.at("self_attn.o_proj"), std::move(output));
}

Routing DeepseekV3Architecture::choose(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  return route_by_sigmoid(f, layer, layer.modules.at("mlp.gate"), true, hidden);
}

Tensor DeepseekV3Architecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  if (!layer.kind.moe) return LlamaArchitecture::mlp(f, layer, hidden);
  const Routing routing = choose(f, layer, hidden);
  return add_shared_experts(f, layer, run_experts(f, layer, "mlp.experts.", hidden, routing), hidden);
}

LayerInputs DeepseekV2Architecture::prepare(Forward& f, const Modules&, const Tensor&) const {
  LayerInputs inputs;
  inputs.position_ids = f.r.empty({f.dims.s, Size(1)}, DType::int64, "position ids");
  make_masks(f, inputs);
  inputs.extra = complex_table(f, rotary_columns(f));
  return inputs;
}

Routing DeepseekV2Architecture::choose(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  return route_in_fp32(f, layer, layer.modules.at("mlp.gate"), hidden);
}

std::pair<Tensor, Tensor> DeepseekV2Architecture::rotate_latent(Forward& f, const Tensor& q, const Tensor& k,
                                                                const LayerInputs& inputs) const {
  return rotate_each_complex(f, q, k, inputs.extra);
}

}  // namespace membill
