// GPTBigCode (starcoder) as Transformers 5.24 runs it: models/gpt_bigcode/modeling_gpt_bigcode.py. Its layer is GPT-2's, around
// attention with fewer key and value heads.
#pragma once

#include "blocks/gpt2.h"

namespace membill {

class GptBigCodeArchitecture : public Gpt2Architecture {
 protected:
  [[nodiscard]] Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs,
                                 Tensor& weights) const override;
};

}  // namespace membill
