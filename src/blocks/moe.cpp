#include "blocks/moe.h"

namespace membill {

Tensor MixtralArchitecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  if (!layer.kind.moe) return LlamaArchitecture::mlp(f, layer, hidden);
  const Routing routing = route(f, layer, layer.modules.at("mlp.gate"), router_, hidden);
  return run_experts(f, layer, "mlp.experts.", hidden, routing);
}

Tensor Qwen2MoeArchitecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  if (!layer.kind.moe) return LlamaArchitecture::mlp(f, layer, hidden);
  Recorder& r = f.r;
  Tensor shared = gated_mlp(f, layer.modules, "mlp.shared_expert.", layer.kind.mlp.activation, hidden);
  const Routing routing = route(f, layer, layer.modules.at("mlp.gate"), router(), hidden);
  const Tensor chosen = run_experts(f, layer, "mlp.experts.", hidden, routing);
  const auto gate = [&] { return r.sigmoid(apply_linear(f, layer.modules.at("mlp.shared_expert_gate"), hidden)); };
  shared = r.mul(gate(), shared, "gated shared expert");
  return r.add(chosen, shared, "experts and shared expert");
}

Heads OlmoeArchitecture::project(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  return project_with_whole_norms(f, layer, hidden);
}

Tensor GraniteMoeArchitecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  const Routing routing = route_by_logits(f, layer, layer.modules.at("block_sparse_moe.router"), hidden);
  return run_experts(f, layer, "block_sparse_moe.experts.", hidden, routing);
}

}  // namespace membill
