#include "blocks/moe.h"

#include "blocks/layer_norm_parts.h"
#include "blocks/own_rotary.h"
#include "blocks/sparse_mixer.h"

namespace membill {

Tensor MixtralArchitecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  if (!layer.kind.moe) return LlamaArchitecture::mlp(f, layer, hidden);
  const Routing routing = route(f, layer, layer.modules.at("mlp.gate"), router_, hidden);
  return run_experts(f, layer, "mlp.experts.", hidden, routing);
}

LayerInputs Qwen2MoeArchitecture::prepare(Forward& f, const Modules& outer, const Tensor& hidden) const {
  LayerInputs inputs = GatedSharedExpertArchitecture::prepare(f, outer, hidden);
  if (!inputs.local_mask.defined() && !f.unpads()) {
    const bool eager = f.plan.attention == AttentionKernel::eager;
    const Size rows = eager || f.plan.attention_mask ? f.dims.N : f.dims.s;
    const Tensor allowed = f.r.empty({rows, f.keys()}, DType::boolean, "mask of a window, boolean");
    f.locals.push_back(eager ? f.r.empty({rows, f.keys()}, f.stream, "mask of a window") : allowed);
  }
  return inputs;
}

Tensor GatedSharedExpertArchitecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
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

Tensor add_shared_experts(Forward& f, const LayerContext& layer, Tensor chosen, const Tensor& hidden) {
  const Tensor routed = std::move(chosen);
  return f.r.add(routed, gated_mlp(f, layer.modules, "mlp.shared_experts.", layer.kind.mlp.activation, hidden),
                 "experts and shared experts");
}

Heads Glm4MoeArchitecture::project(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  return project_then_norm(f, layer, hidden);
}

void Glm4MoeArchitecture::rotate(Forward& f, const LayerContext&, const LayerInputs& inputs, Heads& heads) const {
  rotate_part_together(f, inputs, heads);
}

Tensor Glm4MoeArchitecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  if (!layer.kind.moe) return LlamaArchitecture::mlp(f, layer, hidden);
  const Routing routing = route_by_sigmoid(f, layer, layer.modules.at("mlp.gate"), true, hidden);
  return add_shared_experts(f, layer, run_experts(f, layer, "mlp.experts.", hidden, routing), hidden);
}

Heads MinimaxM2Architecture::project(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  return project_with_whole_norms(f, layer, hidden);
}

void MinimaxM2Architecture::rotate(Forward& f, const LayerContext&, const LayerInputs& inputs, Heads& heads) const {
  rotate_part_together(f, inputs, heads);
}

Tensor MinimaxM2Architecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  const Routing routing = route_by_sigmoid(f, layer, layer.modules.at("mlp.gate"), false, hidden);
  return run_experts(f, layer, "mlp.experts.", hidden, routing);
}

Tensor PhimoeArchitecture::norm(Forward& f, Module& module, Tensor x) const {
  return layer_norm(f, module, std::move(x));
}

Tensor PhimoeArchitecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  const Routing routing = route_by_sampling(f, layer, layer.modules.at("mlp.router"), hidden);
  return run_experts(f, layer, "mlp.experts.", hidden, routing);
}

Tensor GraniteMoeArchitecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  const Routing routing = route_by_logits(f, layer, layer.modules.at("block_sparse_moe.router"), hidden);
  return run_experts(f, layer, "block_sparse_moe.experts.", hidden, routing);
}

}  // namespace membill
