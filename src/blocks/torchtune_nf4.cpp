// Linears over NF4 weights of torchao 0.15 (dtypes/nf4tensor.py), which torchtune's QLoRA recipes train on.
#include "blocks/torchtune_nf4.h"

#include "blocks/quantized.h"

namespace membill {
namespace {

constexpr std::int64_t kNf4Block = 64, kScalerBlock = 256;

Shape nf4_shape(const Size& elements) { return {elements, Size(1)}; }

// NF4Tensor.get_original_weight: indices of eight bytes for every four bits, which live until it returns.
Tensor original_weight(Recorder& r, const Shape& shape, DType type) {
  const Shape half = nf4_shape(r.symbols().ceil_div(shape.elements(), Size(2)));
  const auto indices = [&] {
    const Tensor shifted = r.empty(half, DType::uint8, "codes of half of the weights");
    return r.empty(half, DType::int64, "indices of half of the weights");
  };
  const Tensor first = indices();
  const Tensor second = indices();
  const Tensor values = r.empty(half, type, "values of half of the weights"),
               others = r.empty(half, type, "values of half of the weights");
  const Tensor scales =
      r.empty(nf4_shape(r.symbols().ceil_div(shape.elements(), Size(kNf4Block))), type, "decoded scales");
  const auto scaled = [&] {
    const Tensor repeated = r.empty(half, type, "scale of each weight");
    return r.empty(half, type, "scaled half of the weights");
  };
  const Tensor left = scaled();
  const Tensor right = scaled();
  return r.empty(shape, type, "dequantised matrix");
}

}  // namespace

void store_torchao_nf4(Recorder& r, const Shape& shape, DType type, const AddPart& add) {
  const ItemId codes = r.writer().item("weights.base"), other = r.writer().item("weights.quantization");
  const Size blocks = r.symbols().ceil_div(shape.elements(), Size(kNf4Block));
  add(r.symbols().ceil_div(shape.elements(), Size(2)), DType::uint8, "4-bit codes", codes);
  add(blocks, DType::int8, "quantised scales", other);
  add(r.symbols().ceil_div(blocks, Size(kScalerBlock)), type, "scales of scales", other);
  add(Size(1), type, "offset", other);
  add(Size(16), type, "table of 16 values", other);
}

// LinearNF4: the matrix is made in forward and again in backward.
Tensor torchao_nf4_linear(Forward& f, Module& module, const Tensor& in) {
  Recorder& r = f.r;
  const Shape shape = module.weight.value.shape();
  Tensor out;
  {
    const ItemPair before = r.items();
    const ItemScope scope(r, dequantized_items(r));
    const Tensor matrix = original_weight(r, shape, in.dtype());
    out = r.empty({in.rows(), shape.rows}, in.dtype(), "output of a quantised linear", before.forward);
    r.use_matmul_workspace();
  }
  // The function saves its weight once the product is there: a checkpoint runs so far again.
  if (r.needs_node({&in})) static_cast<void>(r.saved(r.placeholder({Size(1), Size(1)}, DType::uint8)));
  record_dequantized_linear(r, in, out,
                            [shape, type = in.dtype()](Recorder& rec) { return original_weight(rec, shape, type); });
  if (module.bias == nullptr) return out;
  return r.add(out, module.bias->value, "output with its bias");
}

}  // namespace membill
