// GPT-J as Transformers 5.24 runs it: models/gptj/modeling_gptj.py.
#pragma once

#include "blocks/architecture.h"

namespace membill {

class GptJArchitecture : public Architecture {
 public:
  [[nodiscard]] Tensor embed(Forward& f, const Modules& outer, const Tensor& ids) const override;
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;
  [[nodiscard]] std::string_view embedding_name() const override { return "transformer.wte"; }
};

}  // namespace membill
