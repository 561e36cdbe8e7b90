// Operators that make no tensor: they write into their input, or look at it in a larger shape.
#include "program/recorder.h"

namespace membill {

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
  const Tensor in = std::move(a);
  Tensor out = view(in, in.shape());
  out.body().requires_grad = false;
  if (needs_node({&in, &b}))
    record({&out}, {edge(in), edge(b)},
           [gx = in.requires_grad(), gy = b.requires_grad(), shape = b.shape(), type = b.dtype()](Recorder& r,
                                                                                                  Gradients& g) {
             Gradients gradients(2);
             if (gy) gradients[1] = r.fit_gradient(g[0], shape, type);
             if (gx) gradients[0] = g[0];
             return gradients;
           });
  return out;
}

Tensor Recorder::sub_in_place(Tensor a, const Tensor& b) {
  const Tensor in = std::move(a);
  Tensor out = view(in, in.shape());
  out.body().requires_grad = false;
  if (needs_node({&in, &b}))
    record({&out}, {edge(in), edge(b)},
           [gx = in.requires_grad(), gy = b.requires_grad(), shape = b.shape(), type = b.dtype()](Recorder& r,
                                                                                                  Gradients& g) {
             Gradients gradients(2);
             if (gy) gradients[1] = r.empty(shape, type, "negated gradient");
             if (gx) gradients[0] = g[0];
             return gradients;
           });
  return out;
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
