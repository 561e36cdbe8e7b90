// Linears over packed weights.
#pragma once

#include <functional>

#include "blocks/forward.h"

namespace membill {

// bitsandbytes' 4-bit storages.
[[nodiscard]] constexpr bool is_4bit(WeightFormat format) {
  return format == WeightFormat::nf4 || format == WeightFormat::fp4;
}

// The forward of a linear over the storage of `module`. REQUIRES: module.quantized.
[[nodiscard]] Tensor quantized_linear(Forward& f, Module& module, Tensor x);

// The matrix in the compute type, as dequantize_4bit makes it.
[[nodiscard]] Tensor dequantize(Recorder& recorder, const QuantizedWeight& weight, const Shape& shape);

// Where matrices made from packed weights are billed.
[[nodiscard]] ItemPair dequantized_items(Recorder& recorder);
// The node of a linear over packed weights: backward makes the matrix again, then the input gradient.
void record_dequantized_linear(Recorder& recorder, const Tensor& in, Tensor& out,
                               std::function<Tensor(Recorder&)> make_matrix);

}  // namespace membill
