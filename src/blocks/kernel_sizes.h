// What attention kernels need beside their operands.
#pragma once

#include "blocks/forward.h"

namespace membill {

// Into how many parts flash attention's forward splits the keys of a call with `heads` heads of `width`: over few queries
// multiprocessors would idle. Each part has an output in fp32.
[[nodiscard]] std::int64_t key_splits(const Forward& f, const Size& heads, std::int64_t width);

// Bytes that the backward of the memory-efficient kernel works in, of all `heads` of `width`.
[[nodiscard]] Size efficient_workspace(Forward& f, const Size& heads, std::int64_t width, DType type);

}  // namespace membill
