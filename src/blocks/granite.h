// granite as Transformers 5.24 runs it: llama's block with multipliers on the embedding, the blocks' outputs and the logits.
#pragma once

#include "blocks/llama.h"

namespace membill {

class GraniteArchitecture : public LlamaArchitecture {
 public:
  [[nodiscard]] Tensor embed(Forward& f, const Modules& outer, const Tensor& ids) const override;
  [[nodiscard]] Tensor head(Forward& f, const Modules& outer, Tensor hidden) const override;

 protected:
  [[nodiscard]] Tensor branch(Forward& f, const Tensor& output) const override;
};

}  // namespace membill
