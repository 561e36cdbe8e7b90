// GPT-J and CodeGen as Transformers 5.24 runs them: models/gptj/modeling_gptj.py, models/codegen/modeling_codegen.py.
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

 protected:
  struct Projected {
    Tensor q, k, v;
    Tensor joined;  // what they are parts of, which a variable holds
  };
  [[nodiscard]] virtual Projected project(Forward& f, const LayerContext& layer, const Tensor& hidden) const;
  // Whether sines and cosines stay in fp32: queries and keys then go back to the values' type when they are turned.
  [[nodiscard]] virtual bool has_wide_tables() const { return false; }

 private:
  [[nodiscard]] Tensor attention(Forward& f, const LayerContext& layer, Projected made, const LayerInputs& inputs,
                                 Tensor& weights) const;
};

class CodeGenArchitecture : public GptJArchitecture {
 protected:
  [[nodiscard]] Projected project(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
  [[nodiscard]] bool has_wide_tables() const override { return true; }
};

}  // namespace membill
