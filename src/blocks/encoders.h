// Further encoders as Transformers 5.24 runs them: electra, distilbert, modernbert (models/<type>/modeling_<type>.py), with the head that
// the census has.
#pragma once

#include "blocks/bert.h"

namespace membill {

// An embedding of its own width before bert's layers.
class ElectraArchitecture : public BertArchitecture {
 public:
  ElectraArchitecture() : BertArchitecture({.stem = "electra.", .counts_positions = false}) {}
  [[nodiscard]] Tensor embed(Forward& f, const Modules& outer, const Tensor& ids) const override;

 protected:
  [[nodiscard]] bool predicts_words(const Modules& outer) const override;
  [[nodiscard]] Tensor words(Forward& f, const Modules& outer, const Tensor& hidden) const override;
  [[nodiscard]] Tensor classify(Forward& f, const Modules& outer, const Tensor& hidden) const override;
};

// No token types, no dropout behind attention.
class DistilBertArchitecture : public BertArchitecture {
 public:
  DistilBertArchitecture() : BertArchitecture({.stem = "distilbert.", .counts_positions = false}) {}
  [[nodiscard]] Tensor embed(Forward& f, const Modules& outer, const Tensor& ids) const override;
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;

 protected:
  [[nodiscard]] bool predicts_words(const Modules& outer) const override;
  [[nodiscard]] Tensor words(Forward& f, const Modules& outer, const Tensor& hidden) const override;
  [[nodiscard]] Tensor classify(Forward& f, const Modules& outer, const Tensor& hidden) const override;
};

// Rotary positions in fp32, norms before the blocks, a gated MLP; most layers see a window to both sides.
class ModernBertArchitecture : public BertArchitecture {
 public:
  ModernBertArchitecture() : BertArchitecture({.stem = "model.", .counts_positions = false}) {}
  [[nodiscard]] Tensor embed(Forward& f, const Modules& outer, const Tensor& ids) const override;
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;
  [[nodiscard]] Tensor loss(Forward& f, const Modules& outer, Tensor hidden, const Tensor& labels,
                            Tensor* outputs) const override;
};

}  // namespace membill
