// Llama's block with a mixture of experts for an MLP as Transformers 5.24 runs it: mixtral, qwen3_moe and their relatives.
#pragma once

#include "blocks/experts.h"
#include "blocks/llama.h"

namespace membill {

class MixtralArchitecture : public LlamaArchitecture {
 public:
  explicit MixtralArchitecture(RouterShape router = {}) : router_(router) {}

 protected:
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;

 private:
  RouterShape router_;
};

}  // namespace membill
