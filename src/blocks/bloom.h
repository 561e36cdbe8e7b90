// BLOOM as Transformers 5.24 runs it: models/bloom/modeling_bloom.py. Its attention is its own; there is no other kernel.
#pragma once

#include "blocks/architecture.h"

namespace membill {

class BloomArchitecture : public Architecture {
 public:
  [[nodiscard]] Tensor embed(Forward& f, const Modules& outer, const Tensor& ids) const override;
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;
  [[nodiscard]] std::string_view embedding_name() const override { return "transformer.word_embeddings"; }
};

}  // namespace membill
