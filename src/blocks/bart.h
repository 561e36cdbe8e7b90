// Encoder and decoder with learned positions as Transformers 5.24 runs them: bart and mbart (models/<type>/modeling_<type>.py). The
// decoder's input and labels are as long as the encoder's input.
#pragma once

#include "blocks/architecture.h"

namespace membill {

class BartArchitecture : public Architecture {
 public:
  // `norm_first`: norms before the blocks and one behind each stack (mbart).
  explicit BartArchitecture(bool norm_first) : norm_first_(norm_first) {}

  [[nodiscard]] Tensor embed(Forward& f, const Modules& outer, const Tensor& ids) const override;
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;
  // Between the encoder's last layer and the decoder's first.
  [[nodiscard]] Tensor enter_section(Forward& f, const Modules& outer, const Section& section, Tensor hidden,
                                     LayerInputs& inputs) const override;
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;
  [[nodiscard]] Tensor loss(Forward& f, const Modules& outer, Tensor hidden, const Tensor& labels,
                            Tensor* outputs) const override;
  [[nodiscard]] bool causal() const override { return false; }
  [[nodiscard]] Recorder::CheckpointVariables checkpoint_variables(Forward& f) const override {
    return {{&f.encoder_states}, {}};
  }
  [[nodiscard]] std::string_view embedding_name() const override { return "model.shared"; }

 private:
  [[nodiscard]] Tensor start(Forward& f, const Modules& outer, const char* stack, const Tensor& ids,
                             const Tensor& positions) const;
  [[nodiscard]] Tensor behind_stack(Forward& f, const Modules& outer, const char* name, Tensor hidden) const;

  bool norm_first_;
};

}  // namespace membill
