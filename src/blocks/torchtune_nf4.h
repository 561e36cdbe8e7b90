// Linears over NF4 weights as torchao stores them (torchtune's QLoRA).
#pragma once

#include <functional>

#include "blocks/forward.h"

namespace membill {

using AddPart = std::function<void(const Size& count, DType type, const char* label, ItemId item)>;

// The first parts, which FSDP2 cuts: codes, scales, scales of scales (dtypes/nf4tensor.py fsdp_pre_all_gather).
inline constexpr std::size_t kCutNf4Parts = 3;

// The parts of a weight of `shape` that was of `type`: codes, scales of 64 weights in 8 bits, scales of 256 scales, offset, table.
void store_torchao_nf4(Recorder& recorder, const Shape& shape, DType type, const AddPart& add);

// LinearNF4.apply, and the bias.
[[nodiscard]] Tensor torchao_nf4_linear(Forward& f, Module& module, const Tensor& in);

}  // namespace membill
