// What sits on a card besides the caching allocator's memory.
#pragma once

#include "membill/hardware.h"
#include "membill/report.h"

namespace membill {

// CUDA context and loaded kernels of one training process, with a range.
[[nodiscard]] Range context_bytes(const Hardware& hardware);

}  // namespace membill
