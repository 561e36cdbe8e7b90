#include "blocks/complex_rotary.h"

namespace membill {
namespace {

// A complex64 number takes two fp32 elements: `pairs` times two columns.
Tensor times_table(Forward& f, const Tensor& x, const Tensor& table) {
  Recorder& r = f.r;
  const bool node = r.needs_node({&x});
  const Tensor kept = node ? r.saved(table) : Tensor();
  Tensor out = r.empty(x.shape(), DType::fp32, "rotated, complex");
  if (node)
    r.record({&out}, {r.edge(x)}, [kept, shape = x.shape()](Recorder& rec, Gradients&) {
      const Tensor conjugate = rec.empty(kept.shape(), DType::fp32, "conjugate of the positions");
      return Gradients{rec.empty(shape, DType::fp32, "gradient of a rotation")};
    });
  return out;
}

}  // namespace

Tensor complex_table(Forward& f, const Size& rotary) {
  Recorder& r = f.r;
  const Size half = r.symbols().ceil_div(rotary, Size(2));
  const Tensor angles = r.empty({f.dims.s, half}, DType::fp32, "rotary angles");
  const Tensor numbers = r.empty({f.dims.s, rotary}, DType::fp32, "positions as complex numbers");
  return r.empty({f.dims.s, rotary}, DType::fp32, "positions as complex numbers, scaled");
}

std::pair<Tensor, Tensor> rotate_each_complex(Forward& f, const Tensor& q, const Tensor& k, const Tensor& table) {
  const Tensor q_wide = f.r.cast(q, DType::fp32), k_wide = f.r.cast(k, DType::fp32);
  Tensor q_out = f.r.cast(times_table(f, q_wide, table), q.dtype());
  return {std::move(q_out), f.r.cast(times_table(f, k_wide, table), k.dtype())};
}

std::pair<Tensor, Tensor> rotate_both_complex(Forward& f, const Tensor& q, const Tensor& k, const Tensor& table) {
  const Tensor q_wide = f.r.cast(q, DType::fp32), k_wide = f.r.cast(k, DType::fp32);
  const Tensor q_turned = times_table(f, q_wide, table), k_turned = times_table(f, k_wide, table);
  Tensor q_out = f.r.cast(q_turned, q.dtype());
  return {std::move(q_out), f.r.cast(k_turned, k.dtype())};
}

}  // namespace membill
