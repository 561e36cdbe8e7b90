// Operators of mixtures of experts and of norms written in Python (torch 2.15 derivatives.yaml, FunctionsManual.cpp).
#include "program/recorder.h"

namespace membill {

Tensor Recorder::sub(Tensor a, Tensor b, const char* label) {
  const Tensor x = std::move(a), y = std::move(b);
  Tensor out = empty(broadcast(x.shape(), y.shape()), x.dtype(), label);
  if (!needs_node({&x, &y})) return out;
  record({&out}, {edge(x), edge(y)},
         [xs = x.shape(), ys = y.shape(), xt = x.dtype(), yt = y.dtype(), gx = x.requires_grad(),
          gy = y.requires_grad()](Recorder& r, Gradients& g) {
           Gradients result(2);
           if (gy) result[1] = r.empty(g[0].shape(), g[0].dtype(), "negated gradient");
           if (gx) result[0] = r.fit_gradient(g[0], xs, xt);
           if (gy) result[1] = r.fit_gradient(std::move(result[1]), ys, yt);
           return result;
         });
  return out;
}

// a /= b. The old value is cloned when b's gradient will want it. div_tensor_other_backward: -grad * ((self / other) / other).
Tensor Recorder::div_in_place(Tensor a, const Tensor& b) {
  const bool node = needs_node({&a, &b});
  Tensor kept_a = node && b.requires_grad() ? saved(empty(a.shape(), a.dtype(), "dividend, as it was")) : Tensor();
  Tensor kept_b = node ? saved(b) : Tensor();
  Tensor out = view(a, a.shape());
  if (!node) return out;
  record({&out}, {edge(a), edge(b)},
         [kept_a, kept_b, as = a.shape(), bs = b.shape(), type = a.dtype(), gb = b.requires_grad()](Recorder& r,
                                                                                                    Gradients&) {
           Gradients result(2);
           if (gb) {
             const Tensor negated = r.empty(as, type, "negated gradient"), once = r.empty(as, type, "quotient");
             const Tensor twice = r.empty(as, type, "quotient again");
             result[1] = r.empty(as, type, "gradient of a divisor");
           }
           result[0] = r.empty(as, type, "gradient of a quotient");
           if (gb) result[1] = r.fit_gradient(std::move(result[1]), bs, type);
           return result;
         });
  return out;
}

// x.sum(-1, keepdim=True). The gradient is an expanded view.
Tensor Recorder::sum_of_rows(const Tensor& x) {
  Tensor out = empty({x.rows(), Size(1)}, x.dtype(), "sum of rows");
  if (needs_node({&x}))
    record({&out}, {edge(x)},
           [shape = x.shape()](Recorder& r, Gradients& g) { return Gradients{r.view(g[0], shape)}; });
  return out;
}

// x.view(rows, parts, width).sum(1), whose result autocast makes fp32. The gradient of the view is a copy of the expanded one.
Tensor Recorder::sum_of_parts(const Tensor& x, const Size& rows) {
  Tensor out = empty({rows, x.width()}, autocast_ ? DType::fp32 : x.dtype(), "sum of parts");
  if (needs_node({&x}))
    record({&out}, {edge(x)}, [shape = x.shape(), type = x.dtype()](Recorder& r, Gradients&) {
      return Gradients{r.empty(shape, type, "expanded gradient")};
    });
  return out;
}

// torch.topk(x, k, dim=-1): values and indices. value_selecting_reduction_backward: zeros with the gradient scattered in.
std::array<Tensor, 2> Recorder::top_of_rows(const Tensor& x, const Size& k) {
  Tensor values = empty({x.rows(), k}, x.dtype(), "top values"),
         indices = empty({x.rows(), k}, DType::int64, "top indices");
  if (!needs_node({&x})) return {values, indices};
  Tensor kept = saved(indices);
  record({&values}, {edge(x)}, [kept, shape = x.shape(), type = x.dtype()](Recorder& r, Gradients&) {
    return Gradients{r.empty(shape, type, "gradient of top values, scattered")};
  });
  return {values, indices};
}

// x[index]. The gradient is added row by row into zeros: index_put_ with accumulate sorts the indices
// (aten/src/ATen/native/cuda/Indexing.cu index_put_with_sort_kernel).
Tensor Recorder::index_rows(const Tensor& x, const Tensor& index, const Size& width) {
  const bool node = needs_node({&x});
  Tensor kept = node ? saved(index) : Tensor();
  Tensor out = empty({index.rows(), width}, x.dtype(), "selected rows");
  if (!node) return out;
  record({&out}, {edge(x)},
         [kept, shape = x.shape(), type = x.dtype(), rows = Shape{index.rows(), Size(1)}](Recorder& r, Gradients&) {
           Gradients result{r.empty(shape, type, "gradient of selected rows")};
           const Tensor linear = r.empty(rows, DType::int64, "linear indices");
           { const Tensor wrapped = r.empty(rows, DType::int64, "indices without negatives"); }
           const Tensor sorted = r.empty(rows, DType::int64, "sorted indices"),
                        order = r.empty(rows, DType::int64, "order of indices");
           const Tensor range = r.empty(rows, DType::int64, "positions of indices");
           return result;
         });
  return out;
}

// torch.nn.functional.grouped_mm over the experts' matrices, not an operator of autocast: x is brought to the weight's type.
Tensor Recorder::grouped_linear(Tensor x, Parameter& weight, const Tensor& offsets, const Size& outputs) {
  if (parameter_use_ == nullptr) return run_grouped_linear(std::move(x), weight, offsets, outputs);
  x = parameter_use_->before(std::move(x), weight, nullptr);
  return parameter_use_->after(run_grouped_linear(std::move(x), weight, offsets, outputs), weight, nullptr);
}

Tensor Recorder::run_grouped_linear(Tensor x, Parameter& weight, const Tensor& offsets, const Size& outputs) {
  const Tensor in = cast(std::move(x), weight.value.dtype());
  const bool node = needs_node({&in, &weight.value});
  const bool to_input = node && in.requires_grad(), to_weight = node && weight.value.requires_grad();
  Tensor kept_offsets = node ? saved(offsets) : Tensor();
  Tensor kept_weight = to_input ? saved(weight.value) : Tensor(), kept_input = to_weight ? saved(in) : Tensor();
  Tensor out = result_of(AtenOperator::grouped_mm, {in.rows(), outputs}, in.dtype(), weight.label).tensor;
  if (!node) return out;
  record({&out}, {edge(in), edge(weight.value)},
         [kept_input, kept_weight, kept_offsets, to_input, to_weight, shape = in.shape(), all = weight.value.shape(),
          type = in.dtype(), own = writer_.item("gradients")](Recorder& r, Gradients&) {
           Gradients result(2);
           if (to_weight) result[1] = r.empty(all, type, "expert weight gradient", own);
           if (to_input) result[0] = r.empty(shape, type, "expert input gradient");
           return result;
         });
  return out;
}

// at::native_layer_norm without weight and bias, in fp32.
Tensor Recorder::plain_layer_norm(Tensor x) {
  const Tensor in = autocast_fp32(std::move(x));
  const bool node = needs_node({&in});
  Tensor kept_input = node ? saved(in) : Tensor();
  Tensor out = empty(in.shape(), in.dtype(), "layer norm output");
  const Shape statistic{in.rows(), Size(1)};
  Tensor mean = empty(statistic, DType::fp32, "layer norm mean"),
         rstd = empty(statistic, DType::fp32, "layer norm rstd");
  if (!node) return out;
  Tensor kept_mean = saved(mean), kept_rstd = saved(rstd);
  record({&out}, {edge(in)},
         [kept_input, kept_mean, kept_rstd, shape = in.shape(), type = in.dtype()](Recorder& r, Gradients&) {
           return Gradients{r.empty(shape, type, "layer norm input gradient")};
         });
  return out;
}

}  // namespace membill
