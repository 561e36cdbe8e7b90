// GPT-Neo as Transformers 5.24 runs it: models/gpt_neo/modeling_gpt_neo.py. GPT-2's block with three projections and scores in fp32.
#pragma once

#include "blocks/gpt2.h"

namespace membill {

class GptNeoArchitecture : public Gpt2Architecture {
 public:
  [[nodiscard]] Tensor embed(Forward& f, const Modules& outer, const Tensor& ids) const override;
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;

 protected:
  [[nodiscard]] Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs,
                                 Tensor& weights) const override;
  [[nodiscard]] bool returns_weights() const override { return true; }
};

}  // namespace membill
