#include "blocks/megatron_mlp.h"

#include "blocks/megatron_parallel.h"
#include "program/reduction.h"

namespace membill {
namespace {

// Keeps the input as it came out of the matrix product.
Tensor fused_activation(Forward& f, const Tensor& x, Parameter* bias, const Size& width) {
  Recorder& r = f.r;
  const Tensor offset = bias != nullptr ? bias->value : Tensor();
  const bool node = r.needs_node({&x, &offset});
  const Tensor kept = node ? r.saved(x) : Tensor();
  Tensor out = r.empty({x.rows(), width}, x.dtype(), "activation");
  if (!node) return out;
  r.record({&out}, {r.edge(x), r.edge(offset)},
           [kept, shape = x.shape(), type = x.dtype(), biased = offset.defined(),
            trained = offset.defined() && offset.requires_grad(), b = offset.defined() ? offset.shape() : Shape{},
            own = r.writer().item("gradients")](Recorder& rec, Gradients& g) {
             Gradients result(2);
             result[0] = rec.empty(shape, type, "gradient of the activation");
             g[0].drop();  // a function written in Python gives up what came in before the bias's sum
             if (biased && trained) result[1] = bias_gradient(rec, b, type, shape.rows, own);
             return result;
           });
  return out;
}

}  // namespace

Tensor bias_gradient(Recorder& r, const Shape& bias, DType type, const Size& rows, ItemId own) {
  Tensor gradient = r.empty(bias, type, "bias gradient", own);
  use_reduction_scratch(r, rows, bias.rows);
  return gradient;
}

Tensor megatron_mlp(Forward& f, Module& first, Module& second, const Size& width, const Tensor& x) {
  const Tensor product = fused_activation(f, column_linear(f, first, x), first.bias.get(), width);
  return row_linear(f, second, product);
}

}  // namespace membill
