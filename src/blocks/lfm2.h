// lfm2 as Transformers 5.24 runs it: llama's attention with norms on q and k, or a short convolution between two gates in its place.
#pragma once

#include "blocks/llama.h"

namespace membill {

class Lfm2Architecture : public LlamaArchitecture {
 public:
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;

 protected:
  [[nodiscard]] AttentionNames attention_names() const override;
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

}  // namespace membill
