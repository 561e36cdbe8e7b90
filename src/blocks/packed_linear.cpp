#include "blocks/packed_linear.h"

#include "blocks/quantized.h"
#include "membill/catalog.h"

namespace membill {
namespace {

Tensor with_bias(Forward& f, Module& module, Tensor out) {
  if (module.bias == nullptr) return out;
  Recorder& r = f.r;
  const Tensor bias = r.cast(module.bias->value, out.dtype());
  return r.add_in_place(std::move(out), bias);
}

// A product over a matrix that autograd saves as it saves any other operand.
Tensor product_with(Forward& f, Module& module, const Tensor& x, Tensor matrix) {
  Parameter weight;
  weight.value = std::move(matrix);
  weight.label = module.weight.label;
  return f.r.linear(x, weight);
}

// gptqmodel 7.7 nn_modules/qlinear/torch.py TorchLinear._forward_eager: the matrix is made in the scales' type, then in the input's.
Tensor gptq(Forward& f, Module& module, const Tensor& x) {
  Recorder& r = f.r;
  Tensor matrix;
  {
    const ItemScope scope(r, dequantized_items(r));
    matrix = r.cast(r.empty(module.weight.value.shape(), DType::fp16, "dequantised matrix"), x.dtype());
  }
  return with_bias(f, module, product_with(f, module, x, std::move(matrix)));
}

// nn_modules/qlinear/gemm_awq_triton.py AwqGEMMTritonLinear: fp16 around the call, autocast inside of it.
Tensor awq(Forward& f, Module& module, Tensor x) {
  Recorder& r = f.r;
  const DType type = x.dtype();
  const Shape shape = module.weight.value.shape();
  const Tensor in = r.cast(std::move(x), DType::fp16);
  const DType inner = r.autocast().value_or(DType::fp16);
  Tensor out;
  {
    const ItemPair before = r.items();
    const ItemScope scope(r, dequantized_items(r));
    const Tensor matrix = r.empty(shape, DType::fp16, "dequantised matrix");
    const Tensor copy = inner == DType::fp16 ? Tensor() : r.empty(shape, inner, "dequantised matrix under autocast"),
                 input = inner == DType::fp16 ? Tensor() : r.empty(in.shape(), inner, "input under autocast");
    out = r.empty({in.rows(), shape.rows}, inner, module.weight.label, before.forward);
    r.use_matmul_workspace();
  }
  record_dequantized_linear(r, in, out, [shape, inner](Recorder& rec) {
    Tensor matrix = rec.empty(shape, DType::fp16, "dequantised matrix");
    return inner == DType::fp16 ? matrix : rec.empty(shape, inner, "dequantised matrix in the gradient's type");
  });
  if (module.bias != nullptr) out = r.add(out, module.bias->value, "output with its bias");
  return type == DType::fp16 ? out : r.cast(std::move(out), type);
}

// hqq 0.2.8 core/quantize.py Quantizer.dequantize: codes, codes less zero points, and their product with the scales.
Tensor unpack_half_quadratic(Recorder& r, const Shape& shape, DType type) {
  const Tensor codes = r.empty(shape, type, "unpacked codes");
  const Tensor shifted = r.empty(shape, type, "codes less zero points");
  return r.empty(shape, type, "dequantised matrix");
}

// core/quantize.py HQQMatmulNoCacheMul keeps its input, though nothing needs it.
Tensor half_quadratic(Forward& f, Module& module, const Tensor& x) {
  Recorder& r = f.r;
  const Shape shape = module.weight.value.shape();
  const DType type = module.quantized->compute;
  Tensor out;
  {
    const ItemPair before = r.items();
    const ItemScope scope(r, dequantized_items(r));
    const Tensor in = r.autocast_input(x);
    const Tensor matrix = unpack_half_quadratic(r, shape, type);
    out = r.empty({x.rows(), shape.rows}, in.dtype(), module.weight.label, before.forward);
    r.use_matmul_workspace();
  }
  if (r.needs_node({&x})) {
    const Tensor kept = r.saved(x);
    record_dequantized_linear(r, x, out,
                              [shape, type, kept](Recorder& rec) { return unpack_half_quadratic(rec, shape, type); });
  }
  return with_bias(f, module, std::move(out));
}

// Blocks of an fp8 matrix along a row; one where the whole matrix has one scale.
Size fp8_blocks_of_row(const Forward& f, const Module& module) {
  const std::int64_t side = f.plan.quantization.group_size.value_or(weight_format(module.quantized->format).group);
  return side < 1 ? Size(1) : f.r.symbols().ceil_div(module.weight.value.width(), Size(side));
}

// transformers 5.24 integrations/finegrained_fp8.py: the input in fp8 with a scale for each block of a row.
Tensor fp8_product(Forward& f, Module& module, const Tensor& x) {
  Recorder& r = f.r;
  const Tensor codes = r.empty(x.shape(), DType::fp8, "input in fp8");
  const Tensor scales = r.empty({x.rows(), fp8_blocks_of_row(f, module)}, DType::fp32, "scales of the input");
  return r.empty({x.rows(), module.weight.value.rows()}, x.dtype(), module.weight.label);
}

// _dequantize_fp8_weight: the scales of blocks are repeated for every row.
Tensor fp8(Forward& f, Module& module, const Tensor& x) {
  Tensor out = fp8_product(f, module, x);
  const Size blocks = fp8_blocks_of_row(f, module);
  record_dequantized_linear(f.r, x, out, [shape = module.weight.value.shape(), type = x.dtype(), blocks](Recorder& r) {
    Tensor matrix = r.empty(shape, type, "dequantised matrix");
    const Tensor scales = r.empty({shape.rows, blocks}, type, "scales of every row");
    return matrix;
  });
  return with_bias(f, module, std::move(out));
}

// Kernels of serving engines: the weights stay packed; 8-bit ones multiply an 8-bit input.
Tensor served(Forward& f, Module& module, const Tensor& x) {
  Recorder& r = f.r;
  Tensor out;
  {
    const bool narrow = weight_format(module.quantized->format).packing == Packing::rows;
    const Tensor codes = narrow ? r.empty(x.shape(), DType::int8, "input in 8 bits") : Tensor(),
                 scales = narrow ? r.empty({x.rows(), Size(1)}, DType::fp32, "scales of the input") : Tensor();
    out = r.empty({x.rows(), module.weight.value.shape().rows}, x.dtype(), module.weight.label);
  }
  return with_bias(f, module, std::move(out));
}

}  // namespace

Tensor packed_linear(Forward& f, Module& module, Tensor x) {
  const bool trains = f.plan.stage != Stage::inference;
  switch (weight_format(module.quantized->format).packing) {
    case Packing::gptq: return trains ? gptq(f, module, x) : served(f, module, x);
    case Packing::awq: return trains ? awq(f, module, std::move(x)) : served(f, module, x);
    case Packing::half_quadratic: return half_quadratic(f, module, x);
    case Packing::fp8_blocks: return fp8(f, module, x);
    default: return served(f, module, x);
  }
}

}  // namespace membill
