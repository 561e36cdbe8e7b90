#include "blocks/linear_8bit.h"

namespace membill {
namespace {

// backends/cuda/ops.py int8_vectorwise_quant: the fp16 input, its magnitudes and outlier marks live as long as the call.
struct QuantizedInput {
  Tensor scales, codes;
};

QuantizedInput quantize_input(Recorder& r, const Tensor& x) {
  const Tensor half = x.dtype() == DType::fp16 ? x : r.empty(x.shape(), DType::fp16, "input in fp16");
  QuantizedInput result;
  result.scales = r.empty({x.rows(), Size(1)}, DType::fp32, "scales of the input");
  result.codes = r.empty(x.shape(), DType::int8, "input in int8");
  const Tensor magnitude = r.empty(x.shape(), DType::fp16, "magnitudes of the input");
  const Tensor outliers = r.empty(x.shape(), DType::boolean, "outliers of the input");
  return result;
}

// int8_scaled_mm: an int32 product, scaled to fp16, then in the input's type.
Tensor product(Recorder& r, const Shape& shape, DType type, const char* label) {
  const Tensor sums = r.empty(shape, DType::int32, "int32 product");
  Tensor half = r.empty(shape, DType::fp16, label);
  return type == DType::fp16 ? half : r.empty(shape, type, label);
}

// The weight in the input's type for the gradient of the input.
Tensor input_gradient(Recorder& r, const Shape& weight, const Shape& shape, DType type, DType incoming) {
  const ItemId item = r.writer().item("weights.dequantized");
  const Tensor matrix = r.empty(weight, type, "dequantised matrix", item);
  { const Tensor scales = r.empty({weight.rows, Size(1)}, DType::fp32, "scaled row scales", item); }
  const Tensor converted =
      incoming == type ? Tensor() : r.empty({shape.rows, weight.rows}, type, "gradient in the input's type");
  Tensor gradient = r.empty(shape, type, "input gradient");
  gradient.body().summed_apart = true;
  r.use_matmul_workspace();
  return gradient;
}

}  // namespace

Tensor linear_8bit(Forward& f, Module& module, Tensor x) {
  Recorder& r = f.r;
  const Tensor in = std::move(x);
  const Shape weight = module.weight.value.shape();
  Tensor out;
  {
    const QuantizedInput input = quantize_input(r, in);
    out = product(r, {in.rows(), weight.rows}, in.dtype(), module.weight.label);
  }
  if (!r.needs_node({&in})) return out;
  r.hold_in_graph(in);
  r.record({&out}, {r.edge(in)}, [weight, shape = in.shape(), type = in.dtype()](Recorder& rec, Gradients& g) {
    return Gradients{input_gradient(rec, weight, shape, type, g[0].dtype())};
  });
  return out;
}

}  // namespace membill
