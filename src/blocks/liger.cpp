#include "blocks/liger.h"

#include "blocks/key_cache.h"

namespace membill {

LigerRotary rotary_call(const Forward& f, const LayerContext& layer, const LayerInputs& inputs) {
  const AttentionShape& shape = layer.kind.attention;
  const bool sliding = shape.sliding_window.has_value(), own_tables = sliding && inputs.local_cos.defined();
  const bool masked = (sliding ? inputs.local_mask : inputs.mask).defined();
  const AttentionKernel kernel = choose_attention(f, layer.kind, masked).kernel;
  const bool heads_first = kernel == AttentionKernel::eager || kernel == AttentionKernel::sdpa_math;
  LigerRotary call{own_tables ? inputs.local_cos : inputs.cos, own_tables ? inputs.local_sin : inputs.sin,
                   shape.fused_qkv};
  call.copies_query = heads_first;
  call.copies_key = heads_first || turns_keys(f, layer.kind) || (masked && shape.heads != shape.kv_heads);
  return call;
}

Tensor liger_mlp(Forward& f, Modules& modules, const Tensor& hidden) {
  Recorder& r = f.r;
  const auto down = [&](Tensor product) { return apply_linear(f, modules.at("mlp.down_proj"), std::move(product)); };
  if (Module* fused = modules.find("mlp.gate_up_proj")) {
    const Tensor both = apply_linear(f, *fused, hidden);
    const Shape half{both.rows(), r.symbols().ceil_div(both.width(), Size(2))};
    auto [gate, up] = r.split_in_two(both, half);
    return down(liger_gated_product(f, true, std::move(gate), std::move(up)));
  }
  Tensor gate = apply_linear(f, modules.at("mlp.gate_proj"), hidden);
  return down(liger_gated_product(f, false, std::move(gate), apply_linear(f, modules.at("mlp.up_proj"), hidden)));
}

Tensor liger_loss(Forward& f, const Architecture& program, bool fused, const Modules& outer, const Tensor& hidden,
                  const Tensor& labels) {
  if (!fused) return liger_whole_loss(f, program.head(f, outer, hidden), labels);
  return liger_fused_loss(f, program.head_matrix(outer).weight, hidden, labels);
}

}  // namespace membill
