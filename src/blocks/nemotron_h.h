// nemotron_h (Nemotron-H, Nemotron 3) as Transformers 5.24 runs it: each block is one mixer behind a norm, mamba's second version,
// attention without positions, an MLP of two matrices, or experts.
#pragma once

#include "blocks/architecture.h"

namespace membill {

class NemotronHArchitecture : public Architecture {
 public:
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;
  [[nodiscard]] Tensor head(Forward& f, const Modules& outer, Tensor hidden) const override;
  [[nodiscard]] std::string_view embedding_name() const override { return "model.embeddings"; }
};

}  // namespace membill
