#include "blocks/qwen_hybrid.h"

#include "blocks/attention.h"
#include "blocks/gated_delta.h"
#include "blocks/key_cache.h"
#include "blocks/layers.h"
#include "blocks/own_norms.h"
#include "blocks/own_rotary.h"

namespace membill {

Tensor QwenHybridArchitecture::norm(Forward& f, Module& module, Tensor x) const {
  return gemma_rms_norm(f, module, std::move(x));
}

Tensor QwenHybridArchitecture::attention(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                         const LayerInputs& inputs, Tensor& weights) const {
  if (layer.kind.linear_attention) return gated_delta_net(f, layer, hidden);
  Recorder& r = f.r;
  const KindDims& dims = layer.dims;
  const auto project = [&](const char* name) { return apply_linear(f, layer.modules.at(name), hidden); };
  auto [queries, gate] = r.split_in_two(r.view(project("self_attn.q_proj"), {f.dims.N * dims.a, Size(2) * dims.d}),
                                        {f.dims.N * dims.a, dims.d});
  gate = r.contiguous_copy(gate, {f.dims.N, dims.a * dims.d}, "gate of the attention output");
  Heads heads;
  heads.q = norm(f, layer.modules.at("self_attn.q_norm"), std::move(queries));
  heads.k = norm(f, layer.modules.at("self_attn.k_norm"),
                 seen_as_heads(f, project("self_attn.k_proj"), dims.k, dims.d, true));
  heads.v = seen_as_heads(f, project("self_attn.v_proj"), dims.k, dims.v, turns_keys(f, layer.kind));
  rotate_part_together(f, inputs, heads);
  const AttentionShape& shape = layer.kind.attention;
  AttentionCall call{dims, shape, choose_attention(f, layer.kind, inputs.mask.defined()), inputs.mask,
                     heads.contiguous};
  call.weights = &weights;
  if (f.cache != nullptr) f.cache->extend(call, heads.k, heads.v);
  Tensor output = run_attention(f, call, heads.q, heads.k, heads.v);
  output = r.mul(output, r.sigmoid(gate), "gated attention output");
  return apply_linear(f, layer.modules.at("self_attn.o_proj"), output);
}

}  // namespace membill
