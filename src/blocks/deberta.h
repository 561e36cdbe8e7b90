// deberta-v2 as Transformers 5.24 runs it: bert's blocks around an attention whose scores know how far tokens lie apart.
#pragma once

#include "blocks/bert.h"

namespace membill {

class DebertaArchitecture : public BertArchitecture {
 public:
  DebertaArchitecture() : BertArchitecture({.stem = "deberta.", .counts_positions = false}) {}
  [[nodiscard]] Tensor embed(Forward& f, const Modules& outer, const Tensor& ids) const override;
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;
  [[nodiscard]] Recorder::CheckpointVariables checkpoint_variables(Forward& f) const override;
  [[nodiscard]] bool keeps_hidden_states() const override { return true; }

 protected:
  [[nodiscard]] Tensor classify(Forward& f, const Modules& outer, const Tensor& hidden) const override;
};

}  // namespace membill
