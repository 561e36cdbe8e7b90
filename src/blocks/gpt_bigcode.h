// GPTBigCode (starcoder) as Transformers 5.24 runs it: models/gpt_bigcode/modeling_gpt_bigcode.py. Its frame is GPT-2's.
#pragma once

#include "blocks/gpt2.h"

namespace membill {

class GptBigCodeArchitecture : public Gpt2Architecture {
 public:
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
};

}  // namespace membill
