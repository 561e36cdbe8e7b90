// gemma, gemma2, gemma3_text, gemma4_text as Transformers 5.24 runs them: norms in fp32, a scaled embedding, capped logits.
#pragma once

#include "blocks/llama.h"

namespace membill {

class GemmaArchitecture : public LlamaArchitecture {
 public:
  [[nodiscard]] Tensor embed(Forward& f, const Modules& outer, const Tensor& ids) const override;
  [[nodiscard]] Tensor head(Forward& f, const Modules& outer, Tensor hidden) const override;

 protected:
  [[nodiscard]] Tensor norm(Forward& f, Module& module, Tensor x) const override;
};

class Gemma2Architecture : public GemmaArchitecture {
 protected:
  [[nodiscard]] NormNames norm_names() const override;
};

// Norms on q and k once all three projections are made; full and sliding layers have their own rotary tables.
class Gemma3Architecture : public Gemma2Architecture {
 public:
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;

 protected:
  [[nodiscard]] Heads project(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
  void rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const override;
};

// Norms without an offset, one on the values, too; each of q and k whole before the next; full layers have heads of their own and may
// take their values from the keys' projection; a layer's output is scaled in place. Small models have a table of words for each layer,
// whose rows gate a further block, and last layers without keys and values of their own; others have experts beside their MLP.
class Gemma4Architecture : public Gemma3Architecture {
 public:
  [[nodiscard]] Tensor embed(Forward& f, const Modules& outer, const Tensor& ids) const override;
  void before_layer(Forward& f) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;
  [[nodiscard]] Recorder::CheckpointVariables checkpoint_variables(Forward& f) const override;
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;

 protected:
  [[nodiscard]] Tensor norm(Forward& f, Module& module, Tensor x) const override;
  [[nodiscard]] Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs,
                                 Tensor& weights) const override;
  [[nodiscard]] Tensor feed_forward(Forward& f, const LayerContext& layer, Tensor hidden,
                                    const Tensor& residual) const override;
};

}  // namespace membill
