// Multi-head latent attention as Transformers 5.24 runs it: deepseek_v2, deepseek_v3 (kimi_k2 is the same class), glm4_moe_lite
// (models/<type>/modeling_<type>.py).
#pragma once

#include <utility>

#include "blocks/moe.h"

namespace membill {

// Keys and values are expanded from their common latent; experts chosen by sigmoids beside shared ones.
class DeepseekV3Architecture : public LlamaArchitecture {
 protected:
  [[nodiscard]] Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs,
                                 Tensor& weights) const override;
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
  [[nodiscard]] virtual Routing choose(Forward& f, const LayerContext& layer, const Tensor& hidden) const;
  // The rotated parts of queries and of the common key.
  [[nodiscard]] virtual std::pair<Tensor, Tensor> rotate_latent(Forward& f, const Tensor& q, const Tensor& k,
                                                                const LayerInputs& inputs) const;
};

// Positions as complex numbers; a softmax over the experts.
class DeepseekV2Architecture : public DeepseekV3Architecture {
 public:
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;

 protected:
  [[nodiscard]] Routing choose(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
  [[nodiscard]] std::pair<Tensor, Tensor> rotate_latent(Forward& f, const Tensor& q, const Tensor& k,
                                                        const LayerInputs& inputs) const override;
};

}  // namespace membill
