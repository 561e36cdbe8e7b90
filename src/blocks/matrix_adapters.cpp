#include "blocks/matrix_adapters.h"

#include "blocks/layers.h"
#include "program/reduction.h"

namespace membill {
namespace {

// The pair's product as an operator of autograd.
Tensor low_rank_product(Forward& f, Parameter& left, Parameter& right, const Shape& shape) {
  Recorder& r = f.r;
  const DType type = r.autocast().value_or(left.value.dtype());
  Tensor second = r.working_copy(right, type), first = r.working_copy(left, type);
  return r.batched_matmul(std::move(first), std::move(second), shape, "product of an adapter's pair");
}

struct PairGradients {
  Tensor left, right;
};

// tuners/loha/layer.py HadaWeight.backward, of one pair; `product` is the gradient times the other pair's product, in the place of
// the one before.
PairGradients pair_gradients(Recorder& r, const Shape& whole, DType gradient, const Parameter& left,
                             const Parameter& right, Tensor& product) {
  const ItemId own = r.writer().item("gradients");
  const DType type = left.value.dtype();
  PairGradients made;
  {
    const Tensor other = r.empty(whole, type, "product of an adapter's pair");
    r.use_matmul_workspace();
    product = r.empty(whole, gradient == type ? type : DType::fp32, "gradient times a product");
  }
  made.left = r.empty(left.value.shape(), type, "weight gradient", own);
  r.use_matmul_workspace();
  made.right = r.empty(right.value.shape(), type, "weight gradient", own);
  r.use_matmul_workspace();
  return made;
}

// HadaWeight: ((w1a @ w1b) * (w2a @ w2b)) * scale in a function of its own, which keeps the four matrices alone.
Tensor hadamard_matrix(Forward& f, MatrixAdapter& adapter, const Shape& shape) {
  Recorder& r = f.r;
  Tensor out;
  {
    const bool grad = r.grad_enabled();
    r.set_grad_enabled(false);
    Tensor product;
    {
      const Tensor first = low_rank_product(f, *adapter.first_a, *adapter.first_b, shape);
      product = r.mul(first, low_rank_product(f, *adapter.second_a, *adapter.second_b, shape), "product of products");
    }
    out = r.mul_scalar(std::move(product), "adapter's matrix");
    r.set_grad_enabled(grad);
  }
  const Tensor &first_a = adapter.first_a->value, &first_b = adapter.first_b->value,
               &second_a = adapter.second_a->value, &second_b = adapter.second_b->value;
  if (!r.needs_node({&first_a, &first_b, &second_a, &second_b})) return out;
  for (const Tensor* matrix : {&first_a, &first_b, &second_a, &second_b}) static_cast<void>(r.saved(*matrix));
  r.record({&out}, {r.edge(first_a), r.edge(first_b), r.edge(second_a), r.edge(second_b)},
           [&adapter, shape, type = out.dtype()](Recorder& rec, Gradients&) {
             const Tensor scaled = rec.empty(shape, type, "scaled gradient");
             Tensor product;
             const PairGradients first = pair_gradients(rec, shape, type, *adapter.first_a, *adapter.first_b, product);
             const PairGradients second =
                 pair_gradients(rec, shape, type, *adapter.second_a, *adapter.second_b, product);
             return Gradients{first.left, first.right, second.left, second.right};
           });
  return out;
}

// torch.kron of two matrices: a product of views that broadcast against one another.
Tensor kronecker_product(Recorder& r, const Tensor& first, const Tensor& second, const Shape& shape) {
  const bool node = r.needs_node({&first, &second});
  const bool to_first = node && first.requires_grad(), to_second = node && second.requires_grad();
  const Tensor kept_first = to_second ? r.saved(first) : Tensor(), kept_second = to_first ? r.saved(second) : Tensor();
  const DType type = first.dtype() == second.dtype() ? first.dtype() : DType::fp32;
  Tensor out = r.empty(shape, type, "Kronecker product");
  if (!node) return out;
  r.record({&out}, {r.edge(first), r.edge(second)},
           [to_first, to_second, kept_first, kept_second, shape, type, a = first.shape(), b = second.shape(),
            second_type = second.dtype()](Recorder& rec, Gradients&) {
             Gradients result(2);
             Tensor of_second, of_first;
             if (to_second) of_second = rec.empty(shape, type, "gradient of a product");
             if (to_first) of_first = rec.empty(shape, type, "gradient of a product");
             if (to_first) result[0] = rec.empty(a, type, "summed gradient", rec.writer().item("gradients"));
             of_first.drop();
             if (to_second) {
               result[1] = rec.empty(b, type, "summed gradient");
               use_reduction_scratch(rec, a.elements(),
                                     b.elements());  // the parts of `second` lie whole in the product
             }
             of_second.drop();
             if (second_type != type && to_second) result[1] = rec.cast(result[1], second_type);
             return result;
           });
  return out;
}

// tuners/lokr/layer.py get_delta_weight.
Tensor kronecker_matrix(Forward& f, MatrixAdapter& adapter, const Shape& shape) {
  const auto factor = [&](std::unique_ptr<Parameter>& whole, std::unique_ptr<Parameter>& a,
                          std::unique_ptr<Parameter>& b) {
    return whole != nullptr ? whole->value : low_rank_product(f, *a, *b, {a->value.rows(), b->value.width()});
  };
  const Tensor first = factor(adapter.first, adapter.first_a, adapter.first_b);
  const Tensor second = factor(adapter.second, adapter.second_a, adapter.second_b);
  return f.r.mul_scalar(kronecker_product(f.r, first, second, shape), "adapter's matrix");
}

}  // namespace

// tuners/loha/layer.py and tuners/lokr/layer.py forward.
Tensor apply_matrix(Forward& f, Module& module, Tensor x) {
  Recorder& r = f.r;
  const DType previous = x.dtype();
  Tensor result = apply_base(f, module, x);
  MatrixAdapter& adapter = *module.matrix;
  const Shape& shape = module.weight.value.shape();
  Tensor output;
  {
    Parameter matrix;
    matrix.value = adapter.hadamard ? hadamard_matrix(f, adapter, shape) : kronecker_matrix(f, adapter, shape);
    matrix.label = "adapter output";
    const Tensor in = r.cast(x, matrix.value.dtype());  // a local of the function
    output = r.linear(in, matrix);
  }
  result = r.add(result, std::move(output), "base and adapter output");
  return r.cast(std::move(result), previous);
}

}  // namespace membill
