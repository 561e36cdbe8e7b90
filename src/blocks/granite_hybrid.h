// granitemoehybrid as Transformers 5.24 runs it: granite's multipliers around mamba layers or attention, an MLP beside the experts.
#pragma once

#include "blocks/moe.h"

namespace membill {

class GraniteHybridArchitecture : public GraniteMoeArchitecture {
 public:
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;

 protected:
  [[nodiscard]] Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs,
                                 Tensor& weights) const override;
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

}  // namespace membill
