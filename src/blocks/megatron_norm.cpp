#include "blocks/megatron_norm.h"

namespace membill {
namespace {

Tensor fused_rms_norm(Recorder& r, Parameter& weight, const Tensor& x) {
  const bool node = r.needs_node({&x, &weight.value});
  const Tensor kept = node ? r.saved(x) : Tensor(), kept_weight = node ? r.saved(weight.value) : Tensor();
  Tensor out = r.empty(x.shape(), x.dtype(), "norm output");
  const Tensor statistic = r.empty({x.rows(), Size(1)}, DType::fp32, "reciprocal of the norm");
  if (!node) return out;
  const Tensor kept_statistic = r.saved(statistic);
  r.record({&out}, {r.edge(x), r.edge(weight.value)},
           [kept, kept_weight, kept_statistic, shape = x.shape(), type = x.dtype(), w = weight.value.shape(),
            trained = weight.trainable, own = r.writer().item("gradients")](Recorder& rec, Gradients&) {
             Gradients result(2);
             result[0] = rec.empty(shape, type, "norm input gradient");
             if (trained) result[1] = rec.empty(w, type, "norm gradient", own);
             return result;
           });
  return out;
}

}  // namespace

Tensor megatron_norm(Forward& f, Module& module, const Tensor& x) {
  if (module.bias != nullptr) return f.r.layer_norm(x, module.weight, module.bias.get());
  return fused_rms_norm(f.r, module.weight, x);
}

}  // namespace membill
