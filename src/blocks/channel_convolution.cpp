#include "blocks/channel_convolution.h"

#include <utility>

#include "blocks/layers.h"
#include "blocks/quantized.h"

namespace membill {

Tensor projected_channels_first(Forward& f, Module& projection, const Tensor& x) {
  Tensor out = apply_linear(f, projection, x);
  const bool copies = projection.quantized == nullptr ? !f.one_row() : !is_4bit(projection.quantized->format);
  return copies ? viewed(f.r, out, out.shape(), "gradient, tokens first") : out;
}

Tensor channel_convolution(Forward& f, const Tensor& given, Parameter& weight, const Shape& shape, Parameter* bias) {
  Recorder& r = f.r;
  const DType type = r.autocast().value_or(weight.value.dtype());
  const Tensor wide = r.cast(given, weight.value.dtype());
  const Tensor offset = bias != nullptr ? r.working_copy(*bias, type) : Tensor();
  // A view of the weight: autocast does not cache its copy.
  const Tensor filter = r.cast(weight.value, type), in = r.autocast_input(wide);
  const bool node = r.needs_node({&in, &filter, &offset});
  const Tensor kept_in = node ? r.saved(in) : Tensor(), kept_filter = node ? r.saved(filter) : Tensor();
  Tensor out;
  {
    const Tensor copy = r.empty(in.shape(), type, "convolution's input, channels first");
    out = r.empty(shape, type, "convolution");
  }
  if (!node) return out;
  r.record({&out}, {r.edge(in), r.edge(filter), r.edge(offset)},
           [kept_in, kept_filter, in_shape = in.shape(), filter_shape = filter.shape(), type,
            to_input = in.requires_grad(), to_filter = filter.requires_grad(),
            to_offset = offset.defined() && offset.requires_grad()](Recorder& rec, Gradients&) {
             const Tensor copy = rec.empty(in_shape, type, "convolution's input, channels first");
             Gradients result(3);
             if (to_filter) result[1] = rec.empty(filter_shape, type, "convolution weight gradient");
             if (to_input) result[0] = rec.empty(in_shape, type, "convolution input gradient");
             if (to_offset) result[2] = rec.empty({in_shape.width, Size(1)}, type, "convolution bias gradient");
             return result;
           });
  return out;
}

Tensor causal_convolution(Forward& f, Module& module, const Size& kernel, const std::string& act, const Tensor& mixed) {
  const Size longer = f.dims.b * (f.dims.s + kernel - Size(1));
  Tensor out = channel_convolution(f, mixed, module.weight, {longer, mixed.width()}, module.bias.get());
  out = part_of(f, out, mixed.shape(), "gradient of the first tokens, zero-filled");
  out = activation(f, act, std::move(out));
  return f.r.cast(std::move(out), mixed.dtype());
}

}  // namespace membill
