// Operators of recurrences written in chunks (torch 2.15 derivatives.yaml, FunctionsManual.cpp, BatchLinearAlgebra.cpp).
#include "program/recorder.h"

namespace membill {

// cumsum_backward: grad.flip(-1).cumsum(-1).flip(-1).
Tensor Recorder::cumulative_sum(Tensor x) {
  const Tensor in = autocast_fp32(std::move(x));
  Tensor out = empty(in.shape(), in.dtype(), "running sum");
  if (needs_node({&in}))
    record({&out}, {edge(in)}, [shape = in.shape(), type = in.dtype()](Recorder& r, Gradients&) {
      const Tensor flipped = r.empty(shape, type, "gradient, flipped");
      const Tensor summed = r.empty(shape, type, "running sum of the gradient");
      return Gradients{r.empty(shape, type, "gradient of a running sum")};
    });
  return out;
}

Tensor Recorder::pad(Tensor x, const Shape& shape) {
  const Tensor in = std::move(x);
  Tensor out = empty(shape, in.dtype(), "padded with zeros");
  if (needs_node({&in}))
    record({&out}, {edge(in)}, [from = in.shape(), type = in.dtype()](Recorder& r, Gradients&) {
      return Gradients{r.empty(from, type, "gradient without the padding")};
    });
  return out;
}

namespace {

// cuBLAS gets a list of pointers for each operand.
Tensor solved(Recorder& r, const Shape& shape, DType type, const Size& batches, const char* label) {
  Tensor out = r.empty(shape, type, label);
  const Tensor of_a = r.empty({batches, Size(1)}, DType::int64, "pointers to the matrices"),
               of_b = r.empty({batches, Size(1)}, DType::int64, "pointers to the right sides");
  r.use_matmul_workspace();
  return out;
}

}  // namespace

// linalg_solve_triangular_backward: the right side's gradient is a solution, too; the matrix's its product with the result, negated,
// of which one half is taken.
Tensor Recorder::solve_triangular(const Tensor& a, const Tensor& b, const Size& batches) {
  const bool node = needs_node({&a, &b});
  const Tensor kept_a = node ? saved(a) : Tensor();
  Tensor out = solved(*this, b.shape(), b.dtype(), batches, "solution");
  if (!node) return out;
  const Tensor kept = detach(saved(out));
  record({&out}, {edge(a), edge(b)},
         [kept_a, kept, batches, as = a.shape(), bs = b.shape(), type = b.dtype()](Recorder& r, Gradients&) {
           Gradients result(2);
           result[1] = solved(r, bs, type, batches, "gradient of the right side");
           Tensor product = r.empty(as, type, "gradient times solution");
           r.use_matmul_workspace();
           const Tensor negated = r.empty(as, type, "gradient times solution, negated");
           product.drop();
           result[0] = r.empty(as, type, "gradient of a triangular matrix");
           return result;
         });
  return out;
}

}  // namespace membill
