// What packed weights hold on the device, part by part, in each storage format.
#pragma once

#include "blocks/forward.h"

namespace membill {

// How the linears of a model are quantised while it is loaded.
struct Quantizer {
  WeightFormat format = WeightFormat::nf4;
  QuantizationPlan layout = {};
  bool double_quant = false;  // of nf4 and fp4: the scales are quantised, too
  DType from = DType::bf16;   // type of the weights before
  bool torchao = false;       // stored by torchao (torchtune), else by bitsandbytes
  Tensor scale_values = {};   // what 8-bit scales stand for, made once for all weights (functional.py name2qmap)
};

// Matrices of one shape that are packed together: the weight of a linear, or those of all experts.
struct PackedShape {
  Size count, out, in;
  [[nodiscard]] Size elements() const { return count * out * in; }
};

// Makes the storage (codes, scales, tables) and, for the time, what making it needs: bitsandbytes copies the weight to the device as it
// is, others come as the checkpoint has them. Allocates to the weights items.
[[nodiscard]] std::unique_ptr<QuantizedWeight> store_quantized(Recorder& recorder, Quantizer& quantizer,
                                                               const PackedShape& shape);

}  // namespace membill
