// litgpt's GPT class with a gated MLP and RMSNorm: llama, mistral and their like (litgpt 0.5.13 model.py).
#pragma once

#include "blocks/architecture.h"

namespace membill {

class LitgptArchitecture final : public Architecture {
 public:
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;
  // Fabric copies what the model returns to fp32; the loop's variable holds it until the next forward. Fine-tuning of adapters calls the
  // head for 128 positions at a time, everything else once; cross entropy goes over 128 rows at a time in either case.
  [[nodiscard]] Tensor loss(Forward& f, const Modules& outer, Tensor hidden, const Tensor& labels,
                            Tensor* outputs) const override;

 private:
  [[nodiscard]] Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden) const;
};

}  // namespace membill
