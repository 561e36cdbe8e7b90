#include "blocks/trained_rows.h"

namespace membill {

// tuners/trainable_tokens/layer.py get_merged_weights: W.index_copy(0, index, delta).
Parameter with_trained_rows(Forward& f, const Module& module) {
  Recorder& r = f.r;
  const Tensor& weight = module.weight.value;
  const Tensor index = r.empty({module.trained_rows->delta.value.rows(), Size(1)}, DType::int64, "ids of trained rows");
  const Tensor delta = r.cast(module.trained_rows->delta.value, weight.dtype());
  Parameter table;
  table.value = r.empty(weight.shape(), weight.dtype(), "embedding with its trained rows");
  table.label = module.weight.label;
  if (!r.needs_node({&delta})) return table;
  r.record({&table.value}, {r.edge(delta)},
           [kept = r.saved(index), kept_delta = r.saved(delta), shape = delta.shape(), type = delta.dtype()](
               Recorder& rec, Gradients&) { return Gradients{rec.empty(shape, type, "gradient of trained rows")}; });
  return table;
}

}  // namespace membill
