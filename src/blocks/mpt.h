// MPT as Transformers 5.24 runs it: models/mpt/modeling_mpt.py. Attention is always written out; alibi is in fp32.
#pragma once

#include "blocks/architecture.h"

namespace membill {

class MptArchitecture : public Architecture {
 public:
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;
  [[nodiscard]] std::string_view embedding_name() const override { return "transformer.wte"; }
};

}  // namespace membill
