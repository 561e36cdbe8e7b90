// Megatron-core's GPT with its local layers (megatron-core 0.16 models/gpt, transformer/transformer_layer.py, attention.py, mlp.py): one
// rank's part of it. Tensors lie tokens first, (s, b, ...).
#pragma once

#include "blocks/architecture.h"
#include "program/discarded.h"

namespace membill {

class MegatronArchitecture final : public Architecture {
 public:
  [[nodiscard]] Tensor embed(Forward& f, const Modules& outer, const Tensor& ids) const override;
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;
  // The vocabulary's columns are split over the tensor-parallel ranks, and so is the loss.
  [[nodiscard]] Tensor loss(Forward& f, const Modules& outer, Tensor hidden, const Tensor& labels,
                            Tensor* outputs) const override;
  [[nodiscard]] std::vector<Tensor> lasting(Forward& f) const override;
  [[nodiscard]] CheckpointEnd after_checkpoint(const std::vector<Modules*>& layers) const override;
  [[nodiscard]] std::string_view embedding_name() const override { return "embedding.word_embeddings"; }
  [[nodiscard]] std::string_view head_name() const override { return "output_layer"; }

 private:
  [[nodiscard]] std::vector<Tensor> attention_parts(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                                    DiscardedResults& projected) const;
  [[nodiscard]] Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const Tensor& mask) const;
};

}  // namespace membill
