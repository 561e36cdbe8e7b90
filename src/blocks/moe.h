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
class GatedSharedExpertArchitecture : public MixtralArchitecture {
 public:
  using MixtralArchitecture::MixtralArchitecture;

 protected:
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

// The model makes the mask of sliding layers though it has none.
class Qwen2MoeArchitecture : public GatedSharedExpertArchitecture {
 public:
  using GatedSharedExpertArchitecture::GatedSharedExpertArchitecture;
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;
};

// Norms over all heads of q and of k together.
class OlmoeArchitecture : public MixtralArchitecture {
 public:
  using MixtralArchitecture::MixtralArchitecture;

 protected:
  [[nodiscard]] Heads project(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

// Sigmoids choose the experts, corrected by a bias; shared ones beside them; heads are partly rotated (glm4_moe).
class Glm4MoeArchitecture : public LlamaArchitecture {
 protected:
  [[nodiscard]] Heads project(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
  void rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const override;
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

// The same without groups and shared experts; norms over all heads of q and of k together.
class MinimaxM2Architecture : public LlamaArchitecture {
 protected:
  [[nodiscard]] Heads project(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
  void rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const override;
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

// phimoe: LayerNorms, sampled experts.
class PhimoeArchitecture : public LlamaArchitecture {
 protected:
  [[nodiscard]] Tensor norm(Forward& f, Module& module, Tensor x) const override;
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

// chosen + mlp.shared_experts(hidden).
[[nodiscard]] Tensor add_shared_experts(Forward& f, const LayerContext& layer, Tensor chosen, const Tensor& hidden);

// Granite's multipliers; the softmax is over the chosen experts only.
class GraniteMoeArchitecture : public GraniteArchitecture {
 protected:
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

}  // namespace membill
