// falcon_h1 as Transformers 5.24 runs it: mamba's second version beside attention in each layer, with multipliers around every part.
#pragma once

#include "blocks/llama.h"

namespace membill {

class FalconH1Architecture : public LlamaArchitecture {
 public:
  [[nodiscard]] Tensor embed(Forward& f, const Modules& outer, const Tensor& ids) const override;
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;
  [[nodiscard]] Tensor head(Forward& f, const Modules& outer, Tensor hidden) const override;

 protected:
  [[nodiscard]] Heads project(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

}  // namespace membill
