#include "blocks/rotation_adapter.h"

#include "blocks/layers.h"

namespace membill {
namespace {

// tuners/oft/layer.py _pytorch_skew_symmetric: the angles in the upper triangles of zeros, less the transposed.
Tensor skew_symmetric(Forward& f, RotationAdapter& adapter, const Shape& square) {
  Recorder& r = f.r;
  const Tensor& angles = adapter.angles.value;
  Tensor matrix = r.empty(square, angles.dtype(), "upper triangles");
  if (r.needs_node({&angles})) {
    static_cast<void>(r.saved(adapter.rows)), static_cast<void>(r.saved(adapter.columns));
    r.record({&matrix}, {r.edge(angles)}, [shape = angles.shape(), type = angles.dtype()](Recorder& rec, Gradients&) {
      return Gradients{rec.empty(shape, type, "weight gradient", rec.writer().item("gradients"))};
    });
  }
  return r.sub(matrix, r.view(matrix, square), "skew-symmetric blocks");
}

// sum.add_(x, alpha=2): the gradient of x is a scaled copy.
void add_twice(Recorder& r, Tensor& sum, const Tensor& x) {
  Tensor out = r.view(sum, sum.shape());
  if (r.needs_node({&sum, &x}))
    r.record({&out}, {r.edge(sum), r.edge(x)},
             [shape = x.shape(), sum_type = sum.dtype(), type = x.dtype(), goes_on = sum.requires_grad()](
                 Recorder& rec, Gradients& g) {
               Gradients result(2);
               result[1] = rec.cast(rec.empty(shape, sum_type, "scaled gradient"), type);
               if (goes_on) result[0] = g[0];
               return result;
             });
  sum = std::move(out);
}

// _cayley_batch with five terms of Neumann's series: 1 + 2Q + 2Q² + 2Q³ + Q⁴.
Tensor cayley_blocks(Forward& f, RotationAdapter& adapter) {
  Recorder& r = f.r;
  const Shape square{adapter.blocks * adapter.width, adapter.width};
  const auto product = [&](const Tensor& a, const Tensor& b) {
    return r.batched_matmul(a, b, square, "power of the blocks");
  };
  const Tensor skew = skew_symmetric(f, adapter, square);
  Tensor sum;
  {
    const Tensor identity = r.empty({adapter.width, adapter.width}, skew.dtype(), "identity matrix");
    sum = r.empty(square, skew.dtype(), "turning blocks");
  }
  add_twice(r, sum, skew);
  const Tensor squared = product(skew, skew);
  add_twice(r, sum, squared);
  Tensor power = product(squared, skew);
  add_twice(r, sum, power);
  power = product(power, skew);
  return r.add_in_place(std::move(sum), power);
}

// OFTRotationModule.forward: einsum of the input's parts with the blocks, copied into rows.
Tensor turned(Forward& f, RotationAdapter& adapter, const Tensor& x) {
  Recorder& r = f.r;
  const Tensor blocks = cayley_blocks(f, adapter);
  const Tensor parts = part_of(f, x, x.shape(), "gradient of the input, in rows");
  const Tensor turned_parts = r.batched_matmul(parts, blocks, x.shape(), "turned input");
  const Tensor rows = r.contiguous_copy(turned_parts, x.shape(), "turned input, in rows");
  return r.cast(rows, x.dtype());
}

}  // namespace

// tuners/oft/layer.py Linear.forward.
Tensor apply_rotation(Forward& f, Module& module, Tensor x) {
  Recorder& r = f.r;
  const Tensor argument = x;  // the call's arguments live until it returns
  const DType previous = x.dtype();
  x = r.cast(std::move(x), module.rotation->angles.value.dtype());
  x = turned(f, *module.rotation, x);
  return r.cast(apply_base(f, module, r.cast(x, previous)), previous);
}

}  // namespace membill
