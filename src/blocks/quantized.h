// Linears over quantised storage (bitsandbytes 0.50.2).
#pragma once

#include <functional>

#include "blocks/forward.h"

namespace membill {

// bitsandbytes' 4-bit storages.
[[nodiscard]] constexpr bool is_4bit(WeightFormat format) {
  return format == WeightFormat::nf4 || format == WeightFormat::fp4;
}

// How the linears of a model are quantised while it is loaded.
struct Quantizer {
  WeightFormat format = WeightFormat::nf4;
  bool double_quant = false;  // of nf4 and fp4: the scales are quantised, too
  DType from = DType::bf16;   // type of the weights before
  bool torchao = false;       // stored by torchao (torchtune), else by bitsandbytes
  Tensor scale_values = {};   // what 8-bit scales stand for, made once for all weights (functional.py name2qmap)
};

// Makes the storage of a weight of `shape` (codes, scales, tables) and, for the time, what making it needs: bitsandbytes copies the
// weight to the device as it is. Allocates to the weights items.
[[nodiscard]] std::unique_ptr<QuantizedWeight> store_quantized(Recorder& recorder, Quantizer& quantizer,
                                                               const Shape& shape);

// Linear4bit.forward, Linear8bitLt.forward.
[[nodiscard]] Tensor quantized_linear(Forward& f, Module& module, Tensor x);

// The matrix in the compute type, as dequantize_4bit makes it.
[[nodiscard]] Tensor dequantize(Recorder& recorder, const QuantizedWeight& weight, const Shape& shape);

// Where matrices made from packed weights are billed.
[[nodiscard]] ItemPair dequantized_items(Recorder& recorder);
// The node of a linear over packed weights: backward makes the matrix again, then the input gradient.
void record_dequantized_linear(Recorder& recorder, const Tensor& in, Tensor& out,
                               std::function<Tensor(Recorder&)> make_matrix);

}  // namespace membill
