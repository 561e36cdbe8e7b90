// Replays a stream of allocator events through the model, and asks on how small a card it survives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "trace/allocator.h"

namespace membill {

enum class AllocatorEventKind : std::uint8_t {
  allocate,  // block `id` of `bytes` bytes on `stream`
  release,   // block `id` becomes reusable
  retire,  // block `id` was freed while another stream uses it (record_stream); a release follows when that has passed
  empty_cache,  // torch.cuda.empty_cache()
};

struct AllocatorEvent {
  AllocatorEventKind kind = AllocatorEventKind::allocate;
  std::int32_t stream = 0;
  std::int32_t id = 0;     // from 0; the replay keeps one handle for each up to the largest
  std::int64_t bytes = 0;  // an empty tensor (0) takes no block
};

struct StreamReplay {
  AllocatorCounters counters;         // at the end, or when memory ran out
  std::optional<std::size_t> failed;  // the event that ran out of memory; none when the stream survives
  [[nodiscard]] bool survives() const { return !failed.has_value(); }
};

// Runs `events` in order on a fresh allocator and stops at the first request that fails. `capacity` as in
// CachingAllocator. REQUIRES: ids are not negative; an id is allocated again only after it was freed.
[[nodiscard]] StreamReplay replay_events(std::span<const AllocatorEvent> events, const AllocatorSettings& settings = {},
                                         std::optional<std::int64_t> capacity = std::nullopt);

// The least capacity, to a multiple of `step` bytes, on which the stream survives, retries included: found by bisection
// between the peak of allocated bytes and what is reserved with room to spare. Survival need not be monotone in the
// capacity (a retry changes what is cached), so a still smaller one may survive by luck. Zero when nothing is allocated.
// REQUIRES: step > 0; no memory fraction is set.
[[nodiscard]] std::int64_t smallest_surviving_capacity(std::span<const AllocatorEvent> events,
                                                       const AllocatorSettings& settings = {},
                                                       std::int64_t step = 2 * kAllocatorMiB);

}  // namespace membill
