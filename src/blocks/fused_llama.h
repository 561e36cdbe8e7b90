// phi3, glm and glm4 as Transformers 5.24 runs them: one matrix for gate and up (phi3: for q, k and v too), partly rotated heads.
#pragma once

#include "blocks/llama.h"

namespace membill {

class Phi3Architecture : public LlamaArchitecture {
 protected:
  [[nodiscard]] Heads project(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
  void rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const override;
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
  [[nodiscard]] Tensor branch(Forward& f, const Tensor& output) const override;
};

class GlmArchitecture : public LlamaArchitecture {
 protected:
  void rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const override;
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

class Glm4Architecture : public GlmArchitecture {
 protected:
  [[nodiscard]] NormNames norm_names() const override;
};

}  // namespace membill
