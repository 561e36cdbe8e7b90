// olmo, olmo2 and olmo3 as Transformers 5.24 runs them: rotary tables in fp32; olmo's norms have no weights, olmo2's follow the blocks.
#pragma once

#include "blocks/llama.h"

namespace membill {

class OlmoArchitecture : public LlamaArchitecture {
 public:
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;

 protected:
  [[nodiscard]] DType rotary_type(DType) const override { return DType::fp32; }
  void rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const override;
};

class Olmo2Architecture : public LlamaArchitecture {
 protected:
  [[nodiscard]] NormNames norm_names() const override;
  [[nodiscard]] Tensor norm(Forward& f, Module& module, Tensor x) const override;
  [[nodiscard]] DType rotary_type(DType) const override { return DType::fp32; }
  [[nodiscard]] Heads project(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
  void rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const override;
};

// Full and sliding layers have their own rotary tables.
class Olmo3Architecture : public Olmo2Architecture {
 public:
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;

 protected:
  void rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const override;
};

}  // namespace membill
