// Linears over NF4 weights as torchao stores them (torchtune's QLoRA).
#pragma once

#include <functional>

#include "blocks/forward.h"

namespace membill {

using AddPart = std::function<void(const Size& count, DType type, const char* label, ItemId item)>;

// The parts of a weight of `shape` that was of `type`: codes, scales of 64 weights in 8 bits, scales of 256 scales, offset, table.
void store_torchao_nf4(Recorder& recorder, const Shape& shape, DType type, const AddPart& add);

// LinearNF4.apply, and the bias.
[[nodiscard]] Tensor torchao_nf4_linear(Forward& f, Module& module, const Tensor& in);

}  // namespace membill
