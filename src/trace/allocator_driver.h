// Drives a CachingAllocator by tensor numbers, and finds the smallest card on which a sequence of requests survives.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "trace/allocator.h"

namespace membill {

// One fresh allocator and the blocks that `tensors` numbered tensors hold of it.
class AllocatorDriver {
 public:
  AllocatorDriver(const AllocatorSettings& settings, std::optional<std::int64_t> capacity, std::size_t tensors)
      : allocator_(settings, capacity), blocks_(tensors) {}

  // False when memory runs out. An empty tensor takes no block. REQUIRES: `tensor` holds none.
  [[nodiscard]] bool allocate(std::size_t tensor, std::int64_t bytes, int stream = 0) {
    return allocate(tensor, allocator_.sized(bytes), stream);
  }
  [[nodiscard]] bool allocate(std::size_t tensor, const SizedRequest& sized, int stream = 0) {
    if (sized.bytes == 0) return true;
    const std::optional<BlockHandle> block = allocator_.allocate(sized, stream);
    if (block) blocks_[tensor] = *block;
    return block.has_value();
  }
  // Nothing happens for an empty tensor.
  void release(std::size_t tensor) { allocator_.release(blocks_[tensor]); }
  void retire(std::size_t tensor) { allocator_.retire(blocks_[tensor]); }
  [[nodiscard]] CachingAllocator& allocator() { return allocator_; }
  [[nodiscard]] const AllocatorCounters& counters() const { return allocator_.counters(); }

 private:
  CachingAllocator allocator_;
  std::vector<BlockHandle> blocks_;
};

// The least multiple of `step` bytes for which `survives(capacity)`, by bisection between `allocated`, the highest sum of blocks in
// use, and `reserved`, what is taken with room to spare. Survival need not be monotone in the capacity (a retry changes what is
// cached), so a still smaller one may survive by luck. Zero when nothing is reserved. REQUIRES: step > 0.
template <typename Survives>
[[nodiscard]] std::int64_t smallest_survivor(std::int64_t allocated, std::int64_t reserved, std::int64_t step,
                                             Survives survives) {
  std::int64_t dies = std::max<std::int64_t>(allocated / step - 1, 0);  // in steps
  std::int64_t lives = (reserved + step - 1) / step;
  if (lives == 0) return 0;
  while (lives - dies > 1) {
    const std::int64_t middle = dies + (lives - dies) / 2;
    (survives(middle * step) ? lives : dies) = middle;
  }
  return lives * step;
}

}  // namespace membill
