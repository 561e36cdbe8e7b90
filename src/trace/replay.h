// Replays a trace through the model of PyTorch's caching allocator (allocator.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trace/allocator.h"
#include "trace/trace.h"

namespace membill {

// Highest and last allocated bytes (whole blocks) of one moment of the billed step.
struct ReplayMoment {
  std::int32_t moment = 0;  // index into Trace::moments
  std::int64_t allocated = 0;
  std::int64_t end = 0;
};

struct ReplayResult {
  bool survives = true;             // false: a request failed even after the cache was freed
  std::int64_t failed_request = 0;  // bytes of the request that failed
  std::int32_t failed_moment = -1;  // index into Trace::moments
  std::int64_t allocated = 0;       // highest in the billed step, as max_memory_allocated counts
  std::int64_t reserved = 0;        // highest once the model is built, as max_memory_reserved counts
  std::int64_t building_allocated = 0, building_reserved = 0;  // highest until then
  std::int64_t retries = 0;                                    // times that the cache had to be given up
  std::vector<ReplayMoment> moments;                           // of the billed step, in order of first occurrence

  // What the job takes of the card.
  [[nodiscard]] std::int64_t reserved_ever() const {
    return reserved > building_reserved ? reserved : building_reserved;
  }
};

// The job on a card whose allocator may take `capacity` bytes; none: without limit.
[[nodiscard]] ReplayResult replay(const Trace& trace, std::span<const std::int64_t> bytes,
                                  const AllocatorSettings& settings, std::optional<std::int64_t> capacity);

// The least capacity, to 1 MiB, on which the job survives.
[[nodiscard]] std::int64_t smallest_capacity(const Trace& trace, std::span<const std::int64_t> bytes,
                                             const AllocatorSettings& settings);

}  // namespace membill
