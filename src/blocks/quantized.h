// Linears over quantised storage (bitsandbytes 0.50.2).
#pragma once

#include "blocks/forward.h"

namespace membill {

// Makes the storage of a weight of `elements` elements: codes, scales, tables. Allocates to the weights items.
[[nodiscard]] std::unique_ptr<QuantizedWeight> store_quantized(Recorder& recorder, WeightFormat format,
                                                               bool double_quant, const Shape& shape);

// The table of the 8-bit scales' values that bitsandbytes keeps once for all weights (functional.py name2qmap).
[[nodiscard]] Tensor shared_scale_table(Recorder& recorder);

// Linear4bit.forward, Linear8bitLt.forward.
[[nodiscard]] Tensor quantized_linear(Forward& f, Module& module, Tensor x);

// The matrix in the compute type, as dequantize_4bit makes it.
[[nodiscard]] Tensor dequantize(Recorder& recorder, const QuantizedWeight& weight, const Shape& shape);

}  // namespace membill
