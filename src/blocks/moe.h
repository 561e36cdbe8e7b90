// Llama's block with a mixture of experts for an MLP as Transformers 5.24 runs it: mixtral, qwen3_moe and their relatives.
#pragma once

#include "blocks/experts.h"
#include "blocks/granite.h"
#include "blocks/llama.h"

namespace membill {

class MixtralArchitecture : public LlamaArchitecture {
 public:
  explicit MixtralArchitecture(RouterShape router = {}) : router_(router) {}

 protected:
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
  [[nodiscard]] const RouterShape& router() const { return router_; }

 private:
  RouterShape router_;
};

// A shared expert of its own width beside the others, behind a sigmoid gate.
class Qwen2MoeArchitecture : public MixtralArchitecture {
 public:
  using MixtralArchitecture::MixtralArchitecture;

 protected:
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

// Norms over all heads of q and of k together.
class OlmoeArchitecture : public MixtralArchitecture {
 public:
  using MixtralArchitecture::MixtralArchitecture;

 protected:
  [[nodiscard]] Heads project(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

// Granite's multipliers; the softmax is over the chosen experts only.
class GraniteMoeArchitecture : public GraniteArchitecture {
 protected:
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

}  // namespace membill
