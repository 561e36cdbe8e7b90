// Falcon as Transformers 5.24 runs it: models/falcon/modeling_falcon.py. Models with alibi run as those with rotary positions.
#pragma once

#include "blocks/architecture.h"

namespace membill {

class FalconArchitecture : public Architecture {
 public:
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;
  [[nodiscard]] std::string_view embedding_name() const override { return "transformer.word_embeddings"; }
};

}  // namespace membill
