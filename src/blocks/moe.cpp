#include "blocks/moe.h"

namespace membill {

Tensor MixtralArchitecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  if (!layer.kind.moe) return LlamaArchitecture::mlp(f, layer, hidden);
  const Routing routing = route(f, layer, layer.modules.at("mlp.gate"), router_, hidden);
  return run_experts(f, layer, "mlp.experts.", hidden, routing);
}

}  // namespace membill
