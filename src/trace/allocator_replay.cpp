#include "trace/allocator_replay.h"

#include <algorithm>
#include <vector>

namespace membill {

namespace {

std::size_t count_ids(std::span<const AllocatorEvent> events) {
  std::int32_t largest = -1;
  for (const AllocatorEvent& event : events) largest = std::max(largest, event.id);
  return static_cast<std::size_t>(largest + 1);
}

// False when memory runs out.
bool apply(const AllocatorEvent& event, CachingAllocator& allocator, BlockHandle& handle) {
  switch (event.kind) {
    case AllocatorEventKind::kAllocate: {
      if (event.bytes == 0) return true;
      const std::optional<BlockHandle> block = allocator.allocate(event.bytes, event.stream);
      if (block) handle = *block;
      return block.has_value();
    }
    case AllocatorEventKind::kFree: allocator.release(handle); return true;
    case AllocatorEventKind::kRetire: allocator.retire(handle); return true;
    case AllocatorEventKind::kEmptyCache: allocator.empty_cache(); return true;
  }
  return true;
}

}  // namespace

StreamReplay replay_events(std::span<const AllocatorEvent> events, const AllocatorSettings& settings,
                           std::optional<std::int64_t> capacity) {
  CachingAllocator allocator(settings, capacity);
  std::vector<BlockHandle> handles(count_ids(events));
  StreamReplay result;
  for (std::size_t i = 0; i < events.size() && result.survives(); ++i) {
    if (!apply(events[i], allocator, handles[static_cast<std::size_t>(events[i].id)])) result.failed = i;
  }
  result.counters = allocator.counters();
  return result;
}

std::int64_t smallest_surviving_capacity(std::span<const AllocatorEvent> events, const AllocatorSettings& settings,
                                         std::int64_t step) {
  const AllocatorCounters roomy = replay_events(events, settings).counters;
  std::int64_t dies = std::max<std::int64_t>(roomy.allocated.peak / step - 1, 0);  // in steps
  std::int64_t survives = (roomy.reserved.peak + step - 1) / step;
  if (survives == 0) return 0;
  while (survives - dies > 1) {
    const std::int64_t middle = dies + (survives - dies) / 2;
    (replay_events(events, settings, middle * step).survives() ? survives : dies) = middle;
  }
  return survives * step;
}

}  // namespace membill
