// torchtitan's own llama (torchtitan 0.2.2 models/llama3/model/model.py).
#pragma once

#include "blocks/architecture.h"

namespace membill {

class TorchtitanArchitecture final : public Architecture {
 public:
  [[nodiscard]] Tensor embed(Forward& f, const Modules& outer, const Tensor& ids) const override;
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;
  // components/loss.py: cross entropy of the logits in fp32; the loop lets go of the logits before the backward.
  [[nodiscard]] Tensor loss(Forward& f, const Modules& outer, Tensor hidden, const Tensor& labels,
                            Tensor* outputs) const override;

 private:
  [[nodiscard]] Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                 const Tensor& positions) const;
};

}  // namespace membill
