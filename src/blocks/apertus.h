// apertus as Transformers 5.24 runs it: llama's block with norms on q and k and an MLP of two matrices around xIELU in Python.
#pragma once

#include "blocks/llama.h"

namespace membill {

class ApertusArchitecture : public LlamaArchitecture {
 protected:
  [[nodiscard]] NormNames norm_names() const override;
  [[nodiscard]] Heads project(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

}  // namespace membill
