// Encoder and decoder with relative position biases as Transformers 5.24 runs them: t5, mt5, umt5 (models/<type>/modeling_<type>.py).
// The decoder's input and labels are as long as the encoder's input.
#pragma once

#include "blocks/architecture.h"

namespace membill {

class T5Architecture : public Architecture {
 public:
  [[nodiscard]] Tensor embed(Forward& f, const Modules& outer, const Tensor& ids) const override;
  // Between the encoder's last layer and the decoder's first.
  [[nodiscard]] Tensor enter_section(Forward& f, const Modules& outer, const Section& section, Tensor hidden,
                                     LayerInputs& inputs) const override;
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;
  [[nodiscard]] Tensor loss(Forward& f, const Modules& outer, Tensor hidden, const Tensor& labels,
                            Tensor* outputs) const override;
  [[nodiscard]] bool causal() const override { return false; }
  [[nodiscard]] Recorder::CheckpointVariables checkpoint_variables(Forward& f) const override;
  [[nodiscard]] std::string_view embedding_name() const override { return "shared"; }
};

}  // namespace membill
