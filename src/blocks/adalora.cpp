#include "blocks/adalora.h"

namespace membill {
namespace {

// x / rank, where the rank is a parameter of one element, so that its type counts. div_tensor_other_backward:
// -grad * ((self / other) / other).
Tensor over_rank(Forward& f, const Tensor& x, const Tensor& rank) {
  Recorder& r = f.r;
  const bool node = r.needs_node({&x, &rank});
  Tensor kept = node ? r.saved(x) : Tensor(), kept_rank = node ? r.saved(rank) : Tensor();
  const DType type = rank.dtype() == DType::fp32 ? DType::fp32 : x.dtype();
  Tensor out = r.empty(x.shape(), type, "adapter output over the rank");
  if (!node) return out;
  r.record(
      {&out}, {r.edge(x), r.edge(rank)},
      [kept, kept_rank, shape = x.shape(), type, own = x.dtype(), gx = x.requires_grad()](Recorder& rec, Gradients&) {
        Gradients result(2);
        {
          Tensor product;
          {
            const Tensor negated = rec.empty(shape, type, "negated gradient");
            const Tensor once = rec.empty(shape, type, "output over the rank");
            const Tensor twice = rec.empty(shape, type, "output over the rank, twice");
            product = rec.empty(shape, type, "gradient of the rank, element by element");
          }
          if (gx) result[0] = rec.cast(rec.empty(shape, type, "gradient over the rank"), own);
          result[1] = rec.empty({Size(1), Size(1)}, DType::fp32, "rank gradient", rec.writer().item("gradients"));
        }
        return result;
      });
  return out;
}

// torch.norm(p @ p.T - I): p.T for matrices of A, p.T @ p for those of B.
Tensor distance_from_identity(Forward& f, Parameter& matrix, const Size& rank) {
  Recorder& r = f.r;
  const Shape square{rank, rank};
  Tensor product;
  {
    Tensor right = r.autocast_input(r.view(matrix.value, matrix.value.shape()));
    Tensor left = r.working_copy(matrix, r.autocast().value_or(matrix.value.dtype()));
    product = r.batched_matmul(std::move(left), std::move(right), square, "matrix times itself");
  }
  Tensor difference;
  {
    const Tensor identity = r.empty(square, product.dtype(), "identity matrix");
    difference = r.sub(std::move(product), identity, "distance from an identity matrix");
  }
  Tensor kept = r.saved(difference);
  Tensor norm = r.empty({Size(1), Size(1)}, DType::fp32, "norm");
  Tensor kept_norm = r.saved(norm);
  r.record({&norm}, {r.edge(difference)}, [kept, kept_norm, square](Recorder& rec, Gradients&) {
    return Gradients{rec.empty(square, DType::fp32, "gradient of the distance")};
  });
  return norm;
}

}  // namespace

// tuners/adalora/layer.py SVDLinear.forward: (dropout(x) @ (A * E).T @ B.T) * scaling / rank.
Tensor adalora_output(Forward& f, LoraAdapter& adapter, const Tensor& x, std::optional<DType> type) {
  Recorder& r = f.r;
  const Tensor rank = r.add_scalar(adapter.rank->value, "rank");
  Tensor narrow;
  {
    const Tensor dropped = r.dropout(x, adapter.dropout);
    Parameter scaled;
    scaled.value = r.mul(adapter.down.value, adapter.values->value, "adapter matrix times singular values");
    scaled.label = "adapter output";
    narrow = r.linear(dropped, scaled);
  }
  Tensor output = r.linear(std::move(narrow), adapter.up);
  if (type) output = r.cast(std::move(output), *type);
  return over_rank(f, r.mul_scalar(std::move(output), "scaled adapter output"), rank);
}

Tensor with_orthogonality(Forward& f, ModelModules& modules, Tensor loss) {
  Recorder& r = f.r;
  const ItemScope scope(r, f.items.block);
  Tensor sum;
  for (UnitModules& unit : modules.units) {
    r.writer().enter(unit.unit, true);
    for (Modules& layer : unit.layers)
      for (const auto& module : layer.all()) {
        if (module->adapter == nullptr) continue;
        LoraAdapter& adapter = *module->adapter;
        for (Parameter* matrix : {&adapter.down, &adapter.up}) {
          Tensor norm = distance_from_identity(f, *matrix, adapter.down.value.rows());
          sum = sum.defined() ? r.add_in_place(std::move(sum), norm) : std::move(norm);
        }
      }
    r.writer().leave();
  }
  if (!sum.defined()) return loss;
  return r.add_in_place(std::move(loss), r.mul_scalar(r.mul_scalar(std::move(sum), "mean"), "weighted distance"));
}

}  // namespace membill
