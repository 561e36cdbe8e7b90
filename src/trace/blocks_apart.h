// What the caching allocator would hold if no block ever served a request of another size: the most that any order of the same requests
// leaves in the cache, but for remains that pin a larger block.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/allocator_settings.h"
#include "trace/trace.h"

namespace membill {

class BlocksApart {
 public:
  // `bytes[i]` is what size i asks for.
  BlocksApart(std::span<const std::int64_t> bytes, const AllocatorSettings& settings);

  void allocate(SizeId size);
  void release(SizeId size);
  // Blocks that nothing uses are given back.
  void empty_cache();

  // Bytes of the segments: of each size as many blocks as were ever in use at once.
  [[nodiscard]] std::int64_t bytes() const;
  // The largest block that was in use since the cache was emptied.
  [[nodiscard]] std::int64_t largest() const;

 private:
  struct Class {
    std::int64_t size = 0, used = 0, most = 0;
  };
  static constexpr std::int32_t kEmpty = -1;

  std::vector<Class> classes_;        // by size
  std::vector<std::int32_t> places_;  // by SizeId: its class, kEmpty for no bytes
};

}  // namespace membill
