// What the caching allocator would hold if no block ever served a request of another size: the most that any order of the same requests
// leaves in the cache, but for remains that pin a larger block.
#pragma once

#include <cstdint>
#include <span>

#include "trace/allocator_settings.h"
#include "trace/trace.h"

namespace membill {

// Bytes of the segments when each size has blocks of its own, as many as were ever in use at once, and one more block of the largest size:
// the rest of a smaller request may keep it from its own. `bytes[i]` is what size i asks for.
[[nodiscard]] std::int64_t reserved_apart(const Trace& trace, std::span<const std::int64_t> bytes,
                                          const AllocatorSettings& settings);

}  // namespace membill
