// Llama's block with an MLP of two matrices as Transformers 5.24 runs it: arcee, nemotron (models/<type>/modeling_<type>.py).
#pragma once

#include "blocks/llama.h"

namespace membill {

class ArceeArchitecture : public LlamaArchitecture {
 protected:
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

// LayerNorm with 1 + w for a weight, in autocast's 16-bit type; a part of each head is rotated.
class NemotronArchitecture : public ArceeArchitecture {
 protected:
  [[nodiscard]] Tensor norm(Forward& f, Module& module, Tensor x) const override;
  void rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const override;
};

}  // namespace membill
