// GPT-2 as Transformers 5.24 runs it: models/gpt2/modeling_gpt2.py.
#pragma once

#include "blocks/architecture.h"

namespace membill {

class Gpt2Architecture : public Architecture {
 public:
  [[nodiscard]] Tensor embed(Forward& f, const Modules& outer, const Tensor& ids) const override;
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;
  [[nodiscard]] std::string_view embedding_name() const override { return "transformer.wte"; }

 protected:
  // c_attn to c_proj with its dropout; the attention weights of eager attention go to `weights`, which the layer holds.
  [[nodiscard]] virtual Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                         const LayerInputs& inputs, Tensor& weights) const;
  // Whether a layer returns its attention weights beside the hidden states.
  [[nodiscard]] virtual bool returns_weights() const { return false; }
};

}  // namespace membill
