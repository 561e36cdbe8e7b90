// torchtune's own models: llama, mistral and qwen2 (torchtune 0.6.1 modules/transformer.py).
#pragma once

#include "blocks/architecture.h"

namespace membill {

// How a family turns queries and keys: pairs of neighbours in fp32 (llama3_1/_position_embeddings.py), or halves in the model's type
// (qwen2/_positional_embeddings.py).
enum class TuneRotary : std::uint8_t { pairs, halves };

class TorchtuneArchitecture final : public Architecture {
 public:
  explicit TorchtuneArchitecture(TuneRotary rotary) : rotary_(rotary) {}
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;
  // CEWithChunkedOutputLoss over the chunks that plan.loss_chunk says (8 where plan.loss says nothing), or cross entropy over logits
  // that the model made fp32.
  [[nodiscard]] Tensor loss(Forward& f, const Modules& outer, Tensor hidden, const Tensor& labels,
                            Tensor* outputs) const override;

 private:
  [[nodiscard]] Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden) const;
  [[nodiscard]] Tensor rotate(Forward& f, const Tensor& x, const Size& heads, const Size& width) const;

  TuneRotary rotary_;
};

// The model's logits: as many chunks as the loss takes, or all of them in fp32.
[[nodiscard]] std::vector<Tensor> torchtune_logits(Forward& f, const Architecture& architecture, const Modules& outer,
                                                   Tensor hidden);
// The cross entropy of such logits.
[[nodiscard]] Tensor torchtune_cross_entropy(Forward& f, const std::vector<Tensor>& logits, const Tensor& labels);

// The model's logits in fp32, as a model that was told of no chunks returns them.
[[nodiscard]] Tensor torchtune_wide_logits(Forward& f, const Architecture& architecture, const Modules& outer,
                                           Tensor hidden);

}  // namespace membill
