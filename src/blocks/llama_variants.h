// Small departures from llama's block: seed_oss, exaone4, ernie4_5, hunyuan_v1_dense, ministral3, qwen2_vl.
#pragma once

#include "blocks/llama.h"

namespace membill {

// Dropout behind attention and MLP.
class SeedOssArchitecture : public LlamaArchitecture {
 protected:
  [[nodiscard]] Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs,
                                 Tensor& weights) const override;
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

// Norms follow the blocks; those on q and k wait for all three projections; full layers may have no positions.
class Exaone4Architecture : public LlamaArchitecture {
 protected:
  [[nodiscard]] NormNames norm_names() const override;
  [[nodiscard]] Heads project(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

class Ernie45Architecture : public LlamaArchitecture {
 protected:
  [[nodiscard]] DType rotary_type(DType) const override { return DType::fp32; }
  void rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const override;
};

// Sparse layers: experts chosen outside of autocast, shared ones computed before them.
class Ernie45MoeArchitecture : public Ernie45Architecture {
 protected:
  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

// Norms on q and k once they are rotated (hunyuan_v1_dense).
class HunyuanArchitecture : public LlamaArchitecture {
 protected:
  [[nodiscard]] Heads project(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
  void rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const override;
};

// Heads are seen once all three projections are made (qwen2_vl, qwen2_5_vl).
class Qwen2VlArchitecture : public LlamaArchitecture {
 protected:
  [[nodiscard]] Heads project(Forward& f, const LayerContext& layer, const Tensor& hidden) const override;
};

// Queries are scaled by their place (ministral3).
class Ministral3Architecture : public LlamaArchitecture {
 protected:
  void rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const override;
};

}  // namespace membill
