// The text model of Llama 4 as Transformers 5.24 runs it: models/llama4/modeling_llama4.py. Every expert computes every token.
#pragma once

#include "blocks/llama.h"

namespace membill {

class Llama4Architecture : public LlamaArchitecture {
 public:
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;

 protected:
  [[nodiscard]] Tensor norm(Forward& f, Module& module, Tensor x) const override;
  [[nodiscard]] Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs,
                                 Tensor& weights) const override;
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
  [[nodiscard]] bool holds_attention_output() const override { return true; }
};

}  // namespace membill
