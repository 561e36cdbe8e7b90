// Operators that make no tensor: they write into their input, or look at it in a larger shape.
#include "program/recorder.h"

#include <utility>

namespace membill {
namespace {

// `a` with `b` added or subtracted in place; the gradient of `a` is what comes, that of `b` what `gradient_of_b` makes of it.
template <typename GradientOfB>
Tensor changed_in_place(Recorder& recorder, Tensor a, const Tensor& b, GradientOfB gradient_of_b) {
  const Tensor in = std::move(a);
  Tensor out = recorder.view(in, in.shape());
  out.body().requires_grad = false;
  if (recorder.needs_node({&in, &b}))
    recorder.record({&out}, {recorder.edge(in), recorder.edge(b)},
                    [gx = in.requires_grad(), gy = b.requires_grad(), gradient_of_b](Recorder& r, Gradients& g) {
                      Gradients gradients(2);
                      if (gy) gradients[1] = gradient_of_b(r, g[0]);
                      if (gx) gradients[0] = g[0];
                      return gradients;
                    });
  return out;
}

}  // namespace

Tensor Recorder::scale_in_place(Tensor x) {
  const Tensor in = std::move(x);
  Tensor out = view(in, in.shape());
  if (needs_node({&in}))
    record({&out}, {edge(in)}, [shape = in.shape(), type = in.dtype()](Recorder& r, Gradients&) {
      return Gradients{r.empty(shape, type, "scaled gradient")};
    });
  return out;
}

Tensor Recorder::add_in_place(Tensor a, const Tensor& b) {
  return changed_in_place(*this, std::move(a), b,
                          [shape = b.shape(), type = b.dtype()](Recorder& r, const Tensor& gradient) {
                            return r.fit_gradient(gradient, shape, type);
                          });
}

Tensor Recorder::sub_in_place(Tensor a, const Tensor& b) {
  return changed_in_place(*this, std::move(a), b, [shape = b.shape(), type = b.dtype()](Recorder& r, const Tensor&) {
    return r.empty(shape, type, "negated gradient");
  });
}

Tensor Recorder::reshaped(const Tensor& x, const Shape& shape) {
  Tensor out = view(x, shape);
  if (needs_node({&x}))
    record({&out}, {edge(x)}, [whole = x.shape()](Recorder& r, Gradients& g) {
      Tensor gradient = r.view(g[0], whole);
      gradient.body().summed_apart = true;
      return Gradients{std::move(gradient)};
    });
  return out;
}

Tensor Recorder::broadcast_view(const Tensor& x, const Shape& shape) {
  Tensor out = view(x, shape);
  if (needs_node({&x}))
    record({&out}, {edge(x)}, [whole = x.shape(), type = x.dtype()](Recorder& r, Gradients& g) {
      return Gradients{r.fit_gradient(g[0], whole, type)};
    });
  return out;
}

}  // namespace membill
