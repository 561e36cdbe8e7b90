#include "blocks/tensor_parallel_head.h"

#include <utility>

namespace membill {

bool gathers_split_logits(const TrainingPlan& plan) {
  return plan.parallel.tp > 1 && plan.engine == Engine::deepspeed && plan.implementation == Implementation::hf;
}

Tensor with_gathered_logits(Forward& f, Tensor logits) {
  Recorder& r = f.r;
  const Tensor part = std::move(logits);
  const Shape whole{part.rows(), f.dims.V};
  const Tensor gathered = r.empty(whole, part.dtype(), "logits of all ranks");
  Tensor out = r.empty(whole, part.dtype(), "logits");
  if (!r.needs_node({&part})) return out;
  r.record({&out}, {r.edge(part)}, [shape = part.shape(), type = part.dtype()](Recorder& rec, Gradients&) {
    return Gradients{rec.empty(shape, type, "gradient of this rank's logits")};
  });
  return out;
}

}  // namespace membill
