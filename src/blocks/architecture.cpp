#include "blocks/architecture.h"

#include "blocks/layers.h"

namespace membill {

Tensor Architecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  return apply_embedding(f, outer.at(embedding_name()), ids);
}

LayerInputs Architecture::prepare(Forward&, const Modules&, const Tensor&) const { return {}; }

Tensor Architecture::head(Forward& f, const Modules& outer, Tensor hidden) const {
  Module* own = outer.find(head_name());
  return apply_linear(f, own != nullptr ? *own : outer.at(embedding_name()), std::move(hidden));
}

}  // namespace membill
