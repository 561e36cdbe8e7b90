// cohere and cohere2 as Transformers 5.24 runs them: one norm, attention and MLP beside each other, scaled logits.
#pragma once

#include "blocks/llama.h"

namespace membill {

class CohereArchitecture : public LlamaArchitecture {
 public:
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor head(Forward& f, const Modules& outer, Tensor hidden) const override;

 protected:
  [[nodiscard]] Tensor norm(Forward& f, Module& module, Tensor x) const override;
  [[nodiscard]] Heads project(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
  void rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const override;
};

// Only sliding layers have positions.
class Cohere2Architecture : public CohereArchitecture {
 protected:
  void rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const override;
};

}  // namespace membill
