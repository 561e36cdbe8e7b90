// gpt_oss as Transformers 5.24 runs it: models/gpt_oss/modeling_gpt_oss.py. Attention is written out, with a sink beside the keys of
// each head.
#pragma once

#include "blocks/llama.h"

namespace membill {

class GptOssArchitecture : public LlamaArchitecture {
 public:
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;

 protected:
  [[nodiscard]] Tensor norm(Forward& f, Module& module, Tensor x) const override;
  [[nodiscard]] Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs,
                                 Tensor& weights) const override;
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

}  // namespace membill
