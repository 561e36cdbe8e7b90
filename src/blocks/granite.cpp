#include "blocks/granite.h"

namespace membill {

Tensor GraniteArchitecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  const Tensor embedded = embed_tokens(f, outer, ids);
  return f.r.mul_scalar(embedded, "scaled embedding");
}

Tensor GraniteArchitecture::head(Forward& f, const Modules& outer, Tensor hidden) const {
  const Tensor logits = LlamaArchitecture::head(f, outer, std::move(hidden));
  return f.r.mul_scalar(logits, "scaled logits");
}

Tensor GraniteArchitecture::branch(Forward& f, const Tensor& output) const {
  return f.r.mul_scalar(output, "scaled block output");
}

}  // namespace membill
