// The llama block as Transformers 5.24 runs it: llama, mistral, qwen2, qwen3 and what follows them to the letter.
#pragma once

#include "blocks/architecture.h"

namespace membill {

class LlamaArchitecture : public Architecture {
 public:
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden, const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;

 protected:
  [[nodiscard]] virtual Tensor norm(Forward& f, Module& module, Tensor x) const;
  [[nodiscard]] virtual Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs) const;
  [[nodiscard]] virtual Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const;
};

// Masks and rotary tables of a model without or with sliding layers, as create_causal_mask and create_sliding_window_causal_mask
// make them: none where the kernel needs none.
void make_masks(Forward& f, LayerInputs& inputs);
// Whether a layer of `kind` gets a mask tensor under SDPA: a padding mask, or a window that the sequence reaches.
[[nodiscard]] bool needs_mask(const Forward& f, const LayerKind& kind);

}  // namespace membill
