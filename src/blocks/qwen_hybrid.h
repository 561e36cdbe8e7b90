// qwen3_next, qwen3_5, qwen3_5_moe as Transformers 5.24 runs them: Gated DeltaNet in most layers, attention behind a gate in the others.
#pragma once

#include "blocks/moe.h"

namespace membill {

class QwenHybridArchitecture : public GatedSharedExpertArchitecture {
 public:
  using GatedSharedExpertArchitecture::GatedSharedExpertArchitecture;

 protected:
  [[nodiscard]] Tensor norm(Forward& f, Module& module, Tensor x) const override;
  [[nodiscard]] Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs,
                                 Tensor& weights) const override;
};

}  // namespace membill
