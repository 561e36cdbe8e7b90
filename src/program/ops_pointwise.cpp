// Element-wise operators and their derivatives (torch 2.15 derivatives.yaml, FunctionsManual.cpp).
#include "program/recorder.h"
#include "program/reduction.h"

namespace membill {
namespace {

DType promote(DType a, DType b) {
  if (a == b) return a;
  const bool a_float = a == DType::fp32 || a == DType::bf16 || a == DType::fp16;
  const bool b_float = b == DType::fp32 || b == DType::bf16 || b == DType::fp16;
  if (!b_float) return a;
  if (!a_float) return b;
  return DType::fp32;
}

}  // namespace

const Shape& Recorder::broadcast(const Shape& a, const Shape& b) const {
  if (!symbols_.at_least(a.elements(), b.elements())) return b;
  // A weight's shape is a column; one row of tokens has as many elements.
  const bool a_is_a_column = a.width == Size(1) && b.width != Size(1);
  return a_is_a_column && symbols_.at_least(b.elements(), a.elements()) ? b : a;
}

Tensor Recorder::fit_gradient(Tensor gradient, const Shape& shape, DType dtype, bool to_parameter) {
  const ItemId item = to_parameter ? writer_.item("gradients") : items_.forward;
  if (!symbols_.equal(gradient.shape().elements(), shape.elements())) {
    Tensor reduced = empty(shape, gradient.dtype(), "summed gradient", item);
    // A weight's sum, not that of each row, which may be as many.
    if (symbols_.equal(shape.elements(), gradient.width()) && !(shape.elements() == gradient.rows()))
      use_reduction_scratch(*this, gradient.rows(), gradient.width());
    gradient = std::move(reduced);
  }
  if (gradient.dtype() != dtype) {
    Tensor converted = empty(shape, dtype, "gradient in the operand's type", item);
    gradient = std::move(converted);
  }
  return gradient;
}

Tensor Recorder::cast(Tensor x, DType dtype) {
  if (x.dtype() == dtype) return x;
  const Tensor in = std::move(x);
  Tensor out = empty(in.shape(), dtype, "copy in another type");
  if (needs_node({&in}))
    record({&out}, {edge(in)}, [shape = in.shape(), type = in.dtype()](Recorder& r, Gradients&) {
      return Gradients{r.empty(shape, type, "gradient in the input's type")};
    });
  return out;
}

Tensor Recorder::contiguous_copy(Tensor x, const Shape& shape, const char* label) {
  const Tensor in = std::move(x);
  Tensor out = empty(shape, in.dtype(), label);
  if (needs_node({&in}))
    record({&out}, {edge(in)}, [shape = in.shape(), type = in.dtype()](Recorder& r, Gradients& g) {
      return Gradients{r.fit_gradient(g[0], shape, type)};
    });
  return out;
}

Tensor Recorder::add(Tensor a, Tensor b, const char* label) {
  const Tensor x = std::move(a), y = std::move(b);
  Tensor out = empty(broadcast(x.shape(), y.shape()), promote(x.dtype(), y.dtype()), label);
  if (!needs_node({&x, &y})) return out;
  record({&out}, {edge(x), edge(y)},
         [xs = x.shape(), xt = x.dtype(), ys = y.shape(), yt = y.dtype(), gx = x.requires_grad(),
          gy = y.requires_grad()](Recorder& r, Gradients& g) {
           Gradients out_gradients(2);
           if (gy) out_gradients[1] = r.fit_gradient(g[0], ys, yt);
           if (gx) out_gradients[0] = r.fit_gradient(g[0], xs, xt);
           return out_gradients;
         });
  return out;
}

Tensor Recorder::add_scalar(Tensor x, const char* label) {
  const Tensor in = std::move(x);
  Tensor out = empty(in.shape(), in.dtype(), label);
  if (needs_node({&in})) record({&out}, {edge(in)}, [](Recorder&, Gradients& g) { return Gradients{g[0]}; });
  return out;
}

Tensor Recorder::mul(Tensor a, Tensor b, const char* label) {
  const Tensor x = std::move(a), y = std::move(b);
  const bool node = needs_node({&x, &y});
  const bool gx = node && x.requires_grad(), gy = node && y.requires_grad();
  Tensor kept_x = gy ? saved(x) : Tensor(), kept_y = gx ? saved(y) : Tensor();
  Tensor out = empty(broadcast(x.shape(), y.shape()), promote(x.dtype(), y.dtype()), label);
  if (!node) return out;
  record({&out}, {edge(x), edge(y)},
         [gx, gy, kept_x, kept_y, xs = x.shape(), xt = x.dtype(), ys = y.shape(), yt = y.dtype(),
          x_leaf = x.body().leaf != nullptr, y_leaf = y.body().leaf != nullptr,
          recomputed = saving_ == Saving::stop_at_last](Recorder& r, Gradients& g) mutable {
           Gradients out_gradients(2);
           const Shape full = g[0].shape();
           if (gy) out_gradients[1] = r.empty(full, promote(g[0].dtype(), xt), "gradient of a product");
           if (gx) out_gradients[0] = r.empty(full, promote(g[0].dtype(), yt), "gradient of a product");
           // The engine's validate_outputs comes after the node. What a checkpoint's hook hands over, nobody else holds.
           if (recomputed) kept_x.drop(), kept_y.drop();
           if (gx) out_gradients[0] = r.fit_gradient(std::move(out_gradients[0]), xs, xt, x_leaf);
           if (gy) out_gradients[1] = r.fit_gradient(std::move(out_gradients[1]), ys, yt, y_leaf);
           return out_gradients;
         });
  return out;
}

Tensor Recorder::pointwise(Tensor x, const char* label, Keeps keeps, std::optional<AtenOperator> op) {
  const Tensor in = std::move(x);
  const bool node = needs_node({&in});
  Tensor kept = node && keeps == Keeps::input ? saved(in) : Tensor();
  Tensor out = op ? result_of(*op, in.shape(), in.dtype(), label).tensor : empty(in.shape(), in.dtype(), label);
  if (!node) return out;
  if (keeps == Keeps::output) kept = detach(saved(out));
  record({&out}, {edge(in)}, [kept, shape = in.shape(), type = in.dtype()](Recorder& r, Gradients&) {
    return Gradients{r.empty(shape, type, "gradient")};
  });
  return out;
}

Tensor Recorder::mul_scalar(Tensor x, const char* label) { return pointwise(std::move(x), label, Keeps::nothing); }
Tensor Recorder::neg(Tensor x) { return pointwise(std::move(x), "negated", Keeps::nothing); }
Tensor Recorder::silu(Tensor x) { return pointwise(std::move(x), "silu", Keeps::input, AtenOperator::silu); }
Tensor Recorder::gelu(Tensor x) { return pointwise(std::move(x), "gelu", Keeps::input, AtenOperator::gelu); }
Tensor Recorder::relu(Tensor x) { return pointwise(std::move(x), "relu", Keeps::output); }
Tensor Recorder::tanh(Tensor x) { return pointwise(std::move(x), "tanh", Keeps::output); }
Tensor Recorder::sigmoid(Tensor x) { return pointwise(std::move(x), "sigmoid", Keeps::output); }

Tensor Recorder::exp(Tensor x) { return pointwise(autocast_fp32(std::move(x)), "exponential", Keeps::output); }
Tensor Recorder::softplus(Tensor x) { return pointwise(autocast_fp32(std::move(x)), "softplus", Keeps::input); }

// pow_backward: grad * (exponent * self.pow(exponent - 1)); three tensors until the expression ends.
Tensor Recorder::power(Tensor x, const char* label) {
  const Tensor in = autocast_fp32(std::move(x));
  const bool node = needs_node({&in});
  Tensor kept = node ? saved(in) : Tensor();
  Tensor out = empty(in.shape(), in.dtype(), label);
  if (node)
    record({&out}, {edge(in)}, [kept, shape = in.shape(), type = in.dtype()](Recorder& r, Gradients&) {
      const Tensor lower = r.empty(shape, type, "power of the input");
      const Tensor scaled = r.empty(shape, type, "derivative of the power");
      return Gradients{r.empty(shape, type, "gradient of a power")};
    });
  return out;
}

Tensor Recorder::square(Tensor x) { return power(std::move(x), "square"); }
Tensor Recorder::root_of_power(Tensor x) { return power(std::move(x), "reciprocal root"); }
Tensor Recorder::cube(Tensor x) { return power(std::move(x), "cube"); }

Tensor Recorder::mean_of_rows(Tensor x) {
  const Tensor in = std::move(x);
  const bool node = needs_node({&in});
  const Tensor kept = node && mean_saves_input_ ? saved(in) : Tensor();
  Tensor out = empty({in.rows(), Size(1)}, in.dtype(), "mean of rows");
  if (node)
    record({&out}, {edge(in)}, [kept, shape = in.shape(), type = in.dtype()](Recorder& r, Gradients&) {
      return Gradients{r.empty(shape, type, "gradient of a mean")};
    });
  return out;
}

// rsqrt_backward: -0.5 * grad * result.pow(3).
Tensor Recorder::rsqrt(Tensor x) {
  const Tensor in = autocast_fp32(std::move(x));
  const bool node = needs_node({&in});
  Tensor out = empty(in.shape(), in.dtype(), "rsqrt");
  if (!node) return out;
  Tensor kept = detach(saved(out));
  record({&out}, {edge(in)}, [kept, shape = in.shape(), type = in.dtype()](Recorder& r, Gradients&) {
    const Tensor scaled = r.empty(shape, type, "scaled gradient");
    const Tensor cubed = r.empty(shape, type, "cube of rsqrt");
    return Gradients{r.empty(shape, type, "gradient of rsqrt")};
  });
  return out;
}

// at::native_dropout: one byte of mask an element.
Tensor Recorder::dropout(Tensor x, double p) {
  if (p <= 0) return x;
  const Tensor in = std::move(x);
  Tensor mask = empty(in.shape(), DType::boolean, "dropout mask");
  Tensor out = empty(in.shape(), in.dtype(), "dropout");
  if (!needs_node({&in})) return out;
  Tensor kept = saved(mask);
  record({&out}, {edge(in)}, [kept, shape = in.shape(), type = in.dtype()](Recorder& r, Gradients&) {
    return Gradients{r.empty(shape, type, "gradient of dropout")};
  });
  return out;
}

Tensor Recorder::concatenate(Tensor first, Tensor second, const Shape& shape) {
  const DType type = promote(first.dtype(), second.dtype());
  const Tensor x = std::move(first), y = std::move(second);
  Tensor out = empty(shape, type, "concatenation");
  if (!needs_node({&x, &y})) return out;
  record({&out}, {edge(x), edge(y)},
         [xs = x.shape(), xt = x.dtype(), ys = y.shape(), yt = y.dtype()](Recorder& r, Gradients& g) {
           Tensor of_x = r.fit_gradient(r.view(g[0], xs), xs, xt), of_y = r.fit_gradient(r.view(g[0], ys), ys, yt);
           return Gradients{std::move(of_x), std::move(of_y)};
         });
  return out;
}

Tensor Recorder::slice(Tensor x, const Size& width) {
  const Tensor in = std::move(x);
  Tensor out = view(in, {in.rows(), width});
  if (!needs_node({&in})) return out;
  record({&out}, {edge(in)}, [shape = in.shape(), type = in.dtype()](Recorder& r, Gradients&) {
    return Gradients{r.empty(shape, type, "gradient of a slice, zero-filled")};
  });
  return out;
}

}  // namespace membill
