// Operators that take tensors apart, fill parts of them or pick elements (torch 2.15 derivatives.yaml, FunctionsManual.cpp).
#include <algorithm>

#include "program/recorder.h"

namespace membill {
namespace {

// split_with_sizes_backward: parts that nobody used are made of zeros, then all are joined.
Tensor join_gradients(Recorder& r, const Gradients& given, const std::vector<Shape>& parts, const Shape& whole,
                      DType type) {
  Gradients zeros;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (!given[i].defined()) zeros.push_back(r.empty(parts[i], type, "gradient of an unused part, zeros"));
  return r.empty(whole, type, "joined gradient of the parts");
}

}  // namespace

std::vector<Tensor> Recorder::split(Tensor x, std::vector<Shape> shapes) {
  const Tensor in = std::move(x);
  std::vector<Tensor> parts;
  parts.reserve(shapes.size());
  for (const Shape& shape : shapes) parts.push_back(view(in, shape));
  if (!needs_node({&in})) return parts;
  std::vector<Tensor*> outputs;
  outputs.reserve(parts.size());
  for (Tensor& part : parts) outputs.push_back(&part);
  record(outputs, {edge(in)},
         [shapes = std::move(shapes), shape = in.shape(), type = in.dtype()](Recorder& r, Gradients& g) {
           return Gradients{join_gradients(r, g, shapes, shape, type)};
         });
  return parts;
}

std::array<Tensor, 3> Recorder::split_in_three(Tensor x, const Shape& first, const Shape& second, const Shape& third) {
  std::vector<Tensor> parts = split(std::move(x), {first, second, third});
  return {std::move(parts[0]), std::move(parts[1]), std::move(parts[2])};
}

std::array<Tensor, 2> Recorder::split_in_two(Tensor x, const Shape& first, const Shape& second) {
  std::vector<Tensor> parts = split(std::move(x), {first, second});
  return {std::move(parts[0]), std::move(parts[1])};
}

Tensor Recorder::join(const std::vector<Tensor>& parts, const Shape& shape) {
  Tensor out = empty(shape, parts.front().dtype(), "concatenation");
  std::vector<Edge> edges;
  std::vector<Shape> shapes;
  for (const Tensor& part : parts) {
    edges.push_back(edge(part));
    shapes.push_back(part.shape());
  }
  if (!grad_enabled_ || std::none_of(edges.begin(), edges.end(), [](const Edge& e) { return e.valid(); })) return out;
  record({&out}, std::move(edges), [shapes = std::move(shapes)](Recorder& r, Gradients& g) {
    Gradients gradients;
    for (const Shape& part : shapes) gradients.push_back(r.view(g[0], part));
    return gradients;
  });
  return out;
}

// CopySlices around CopyBackwards (torch/csrc/autograd/functions/tensor.cpp): the gradient of the whole is copied, the part of it
// cloned; a base with a history gets zeros back.
Tensor Recorder::copy_into(Tensor base, const Tensor& x) {
  const Tensor in = std::move(base);
  Tensor out = view(in, in.shape());
  if (!needs_node({&in, &x})) return out;
  record({&out}, {edge(in), edge(x)},
         [whole = in.shape(), part = x.shape(), type = in.dtype(), from = x.dtype(), gb = in.requires_grad(),
          gx = x.requires_grad()](Recorder& r, Gradients&) {
           Gradients result(2);
           Tensor rest = r.empty(whole, type, "gradient of the whole, copied");
           Tensor taken = r.empty(part, type, "gradient of the part, cloned");
           const Tensor zeros = gb ? r.empty(part, type, "gradient of what was there, zeros") : Tensor();
           if (gx) result[1] = r.fit_gradient(std::move(taken), part, from);
           if (gb) result[0] = std::move(rest);
           return result;
         });
  return out;
}

Tensor Recorder::masked_fill(Tensor x, const Tensor& mask, const char* label) {
  const Tensor in = std::move(x);
  const bool node = needs_node({&in});
  const Tensor kept = node ? saved(mask) : Tensor();
  Tensor out = empty(in.shape(), in.dtype(), label);
  if (node)
    record({&out}, {edge(in)}, [kept, shape = in.shape(), type = in.dtype()](Recorder& r, Gradients&) {
      return Gradients{r.empty(shape, type, "gradient, masked")};
    });
  return out;
}

// clamp_backward: a boolean tensor for each bound.
Tensor Recorder::clamp(Tensor x, Bounds bounds) {
  const Tensor in = std::move(x);
  const bool node = needs_node({&in});
  const Tensor kept = node ? saved(in) : Tensor();
  Tensor out = empty(in.shape(), in.dtype(), "clamped");
  if (node)
    record({&out}, {edge(in)}, [kept, bounds, shape = in.shape(), type = in.dtype()](Recorder& r, Gradients&) {
      const Tensor above = r.empty(shape, DType::boolean, "within the bound");
      const Tensor below = bounds == Bounds::both ? r.empty(shape, DType::boolean, "within the other bound") : Tensor();
      return Gradients{r.empty(shape, type, "gradient within the bounds")};
    });
  return out;
}

// gather_backward looks at the input for its shape alone.
Tensor Recorder::gather(const Tensor& x, const Tensor& index) {
  const bool node = needs_node({&x});
  const Tensor kept_input = node ? saved(x) : Tensor(), kept = node ? saved(index) : Tensor();
  Tensor out = empty(index.shape(), x.dtype(), "gathered elements");
  if (node)
    record({&out}, {edge(x)}, [kept_input, kept, shape = x.shape(), type = x.dtype()](Recorder& r, Gradients&) {
      return Gradients{r.empty(shape, type, "gradient of gathered elements, scattered")};
    });
  return out;
}

}  // namespace membill
