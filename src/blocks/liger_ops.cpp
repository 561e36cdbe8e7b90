#include "blocks/liger_ops.h"

namespace membill {

// ops/rms_norm.py rms_norm_forward, rms_norm_backward: one fp32 partial weight gradient a multiprocessor.
Tensor liger_rms_norm(Forward& f, Parameter& weight, bool in_place, Tensor x) {
  Recorder& r = f.r;
  const Tensor in = std::move(x);
  Tensor out = r.empty(in.shape(), in.dtype(), "norm output");
  Tensor statistic = r.empty({in.rows(), Size(1)}, DType::fp32, "norm statistic");
  if (!r.needs_node({&in, &weight.value})) return out;
  const Tensor kept_input = r.saved(in), kept_weight = r.saved(weight.value), kept_statistic = r.saved(statistic);
  const bool to_input = in.requires_grad(), to_weight = weight.value.requires_grad();
  r.record({&out}, {r.edge(in), r.edge(weight.value)},
           [kept_input, kept_weight, kept_statistic, to_weight, to_input, in_place, shape = in.shape(),
            type = in.dtype(), weight_type = weight.value.dtype(), processors = f.multiprocessors,
            own = f.items.gradients](Recorder& rec, Gradients& g) {
             Gradients result(2);
             const Shape row{shape.width, Size(1)};
             const Tensor partial =
                 to_weight ? rec.empty({Size(processors), shape.width}, DType::fp32, "partial norm gradients")
                           : Tensor();
             Tensor input_gradient = in_place ? rec.detach(g[0]) : rec.empty(shape, type, "norm input gradient");
             // Python holds what its function gave: a sum with it is made out of place.
             input_gradient.body().summed_apart = true;
             if (to_input) result[0] = std::move(input_gradient);
             if (!to_weight) return result;
             result[1] = rec.empty(row, DType::fp32, "norm weight gradient", own);
             if (weight_type != DType::fp32) result[1] = rec.empty(row, weight_type, "norm weight gradient", own);
             return result;
           });
  return out;
}

// ops/rope.py.
void liger_rotary(Forward& f, const LigerRotary& call, Tensor& q, Tensor& k) {
  Recorder& r = f.r;
  const auto rows = [&](const Tensor& x) {
    return call.strided ? r.empty(x.shape(), x.dtype(), "contiguous heads") : r.detach(x);
  };
  Tensor q_out = rows(q), k_out = rows(k);
  if (r.needs_node({&q, &k})) {
    const Tensor kept_cos = r.saved(call.cos), kept_sin = r.saved(call.sin);
    r.record({&q_out, &k_out}, {r.edge(q), r.edge(k)},
             [kept_cos, kept_sin, to_query = call.copies_query, to_key = call.copies_key, qs = q.shape(),
              ks = k.shape(), type = q.dtype()](Recorder& rec, Gradients& g) {
               const auto rotated_back = [&](const Tensor& gradient, const Shape& shape, bool copies) {
                 return copies || !gradient.defined() ? rec.empty(shape, type, "gradient, heads last")
                                                      : rec.detach(gradient);
               };
               Tensor query = rotated_back(g[0], qs, to_query);
               return Gradients{std::move(query), rotated_back(g[1], ks, to_key)};
             });
  }
  q = std::move(q_out);
  k = std::move(k_out);
}

// ops/swiglu.py, ops/geglu.py.
Tensor liger_gated_product(Forward& f, bool strided, Tensor gate, Tensor up) {
  Recorder& r = f.r;
  const Tensor a = std::move(gate), b = std::move(up);
  const auto contiguous = [&](const Tensor& x) {
    return strided ? r.empty(x.shape(), x.dtype(), "contiguous half") : r.detach(x);
  };
  const Tensor gate_rows = contiguous(a), up_rows = contiguous(b);
  Tensor out = r.empty(a.shape(), a.dtype(), "gated product");
  if (!r.needs_node({&a, &b})) return out;
  const Tensor kept_gate = r.saved(gate_rows), kept_up = r.saved(up_rows);
  r.record({&out}, {r.edge(a), r.edge(b)}, [kept_gate, kept_up](Recorder& rec, Gradients&) {
    return Gradients{rec.detach(kept_gate), rec.detach(kept_up)};
  });
  return out;
}

}  // namespace membill
