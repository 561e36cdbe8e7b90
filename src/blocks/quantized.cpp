#include "blocks/quantized.h"

#include "blocks/generations.h"
#include "blocks/linear_8bit.h"
#include "blocks/packed_linear.h"
#include "blocks/torchtune_nf4.h"

namespace membill {
namespace {

constexpr std::int64_t kBlock = 64;  // weights a scale

Shape flat(const Size& elements) { return {elements, Size(1)}; }

Size scales_of(Recorder& r, const Shape& shape) { return r.symbols().ceil_div(shape.elements(), Size(kBlock)); }

Tensor half_matrix(Recorder& r, const Shape& shape) {
  return r.empty(shape, DType::fp16, "dequantised matrix in fp16");
}

// bitsandbytes 0.50 backends/cuda/ops.py _gemm_4bit_use_custom_cuda, as it chooses on an A100: a kernel that reads the codes itself, for
// a small matrix and few rows.
bool reads_codes(const Forward& f, const Shape& weight, const Size& rows) {
  constexpr std::int64_t kSmall = std::int64_t{4} * 1024 * 1024, kTile = 64;
  const SymbolTable& symbols = f.r.symbols();
  const std::int64_t outputs = symbols.evaluate(weight.rows), inputs = symbols.evaluate(weight.width);
  if (inputs % kBlock != 0 || outputs * inputs >= kSmall) return false;
  const std::int64_t tiles = ceil_div(outputs, kTile);
  if (inputs * 2 < outputs) return symbols.evaluate(rows) <= (tiles * 3 < f.multiprocessors ? 1536 : 512);
  if (tiles * 4 > f.multiprocessors) return false;
  if (inputs < outputs) return symbols.evaluate(rows) <= 384;
  return symbols.evaluate(rows) <= (tiles * 8 <= f.multiprocessors ? 32 : 128);
}

// _functions.py MatMul4Bit.forward and backends' _dequant_linear_fallback: scales decoded twice when nested, matrix, product.
Tensor matmul_4bit(Forward& f, Module& module, Tensor x) {
  Recorder& r = f.r;
  const Tensor in = std::move(x);
  const QuantizedWeight& weight = *module.quantized;
  const Shape shape = module.weight.value.shape();
  const Generations software = generations(f.plan);
  const bool casts = software.quantizes_from_half && in.dtype() != DType::fp16;
  Tensor out;
  if (!software.quantizes_from_half && reads_codes(f, shape, in.rows())) {
    out = r.empty({in.rows(), shape.rows}, in.dtype(), module.weight.label);
  } else {
    const ItemPair before = r.items();
    const ItemScope scope(r, dequantized_items(r));
    Tensor decoded, shifted;
    if (weight.double_quant) {
      decoded = r.empty(flat(scales_of(r, shape)), DType::fp32, "decoded scales");
      shifted = r.empty(flat(scales_of(r, shape)), DType::fp32, "decoded scales");
    }
    Tensor half = casts ? half_matrix(r, shape) : Tensor();
    const Tensor matrix = r.empty(shape, in.dtype(), "dequantised matrix");
    half.drop();
    out = r.empty({in.rows(), shape.rows}, in.dtype(), module.weight.label, before.forward);
    module.bias != nullptr ? r.use_fused_bias_workspace() : r.use_matmul_workspace();
  }
  record_dequantized_linear(r, in, out, [&weight, shape, casts](Recorder& rec) {
    const Tensor half = casts ? half_matrix(rec, shape) : Tensor();
    return dequantize(rec, weight, shape);
  });
  if (software.holds_4bit_inputs && r.needs_node({&in})) r.hold_in_graph(in);
  return out;
}

// Linear4bit casts its bias to the compute type at its first forward and leaves it so.
void settle_bias(Forward& f, Module& module) {
  if (module.bias == nullptr || module.bias->value.dtype() == module.quantized->compute) return;
  Recorder& r = f.r;
  module.bias->value =
      r.empty(module.bias->value.shape(), module.quantized->compute, "bias", r.writer().item("weights.base"));
}

}  // namespace

ItemPair dequantized_items(Recorder& recorder) {
  const ItemId item = recorder.writer().item("weights.dequantized");
  return {item, item};
}

void record_dequantized_linear(Recorder& recorder, const Tensor& in, Tensor& out,
                               std::function<Tensor(Recorder&)> make_matrix) {
  if (!recorder.needs_node({&in})) return;
  recorder.record({&out}, {recorder.edge(in)},
                  [make = std::move(make_matrix), shape = in.shape(), type = in.dtype()](Recorder& r, Gradients&) {
                    const ItemPair own = r.items();
                    Tensor matrix;
                    {
                      const ItemScope scope(r, dequantized_items(r));
                      matrix = make(r);
                    }
                    Tensor gradient = r.empty(shape, type, "input gradient", own.backward);
                    r.use_matmul_workspace();
                    return Gradients{std::move(gradient)};
                  });
}

Tensor dequantize(Recorder& r, const QuantizedWeight& weight, const Shape& shape) {
  Tensor decoded;
  if (weight.double_quant) decoded = r.empty(flat(scales_of(r, shape)), DType::fp32, "decoded scales");
  return r.empty(shape, weight.compute, "dequantised matrix");
}

namespace {

// nn/modules.py Linear4bit.forward: input in the compute type, result in the input's. The call's arguments live until it returns.
Tensor run_quantized(Forward& f, Module& module, Tensor x) {
  Recorder& r = f.r;
  if (module.quantized->torchao) return torchao_nf4_linear(f, module, x);
  if (module.quantized->format == WeightFormat::int8) return linear_8bit(f, module, std::move(x));
  if (!is_4bit(module.quantized->format)) return packed_linear(f, module, std::move(x));
  const DType type = x.dtype();
  const Tensor in = r.cast(x, module.quantized->compute);
  settle_bias(f, module);
  return r.cast(matmul_4bit(f, module, in), type);
}

}  // namespace

Tensor quantized_linear(Forward& f, Module& module, Tensor x) {
  ParameterUse* engine = f.r.parameter_use();
  if (engine == nullptr) return run_quantized(f, module, std::move(x));
  Parameter* bias = module.bias.get();
  x = engine->before(std::move(x), module.weight, bias);
  return engine->after(run_quantized(f, module, std::move(x)), module.weight, bias);
}

}  // namespace membill
