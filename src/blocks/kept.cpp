#include "blocks/kept.h"

#include <utility>

namespace membill {

Tensor also_keeping(Recorder& r, const Tensor& x, const Tensor& kept) {
  if (!r.needs_node({&x})) return x;
  Tensor out = r.view(x, x.shape());
  r.record({&out}, {r.edge(x)},
           [saved = r.saved(kept)](Recorder&, Gradients& gradients) { return Gradients{std::move(gradients[0])}; });
  return out;
}

}  // namespace membill
