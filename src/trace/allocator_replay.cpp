#include "trace/allocator_replay.h"

#include <algorithm>

#include "trace/allocator_driver.h"

namespace membill {

namespace {

std::size_t count_ids(std::span<const AllocatorEvent> events) {
  std::int32_t largest = -1;
  for (const AllocatorEvent& event : events) largest = std::max(largest, event.id);
  return static_cast<std::size_t>(largest) + 1;
}

// False when memory runs out.
bool apply(const AllocatorEvent& event, AllocatorDriver& driver) {
  const auto id = static_cast<std::size_t>(event.id);
  switch (event.kind) {
    case AllocatorEventKind::allocate: return driver.allocate(id, event.bytes, event.stream);
    case AllocatorEventKind::release: driver.release(id); return true;
    case AllocatorEventKind::retire: driver.retire(id); return true;
    case AllocatorEventKind::empty_cache: driver.allocator().empty_cache(); return true;
  }
  return true;
}

}  // namespace

StreamReplay replay_events(std::span<const AllocatorEvent> events, const AllocatorSettings& settings,
                           std::optional<std::int64_t> capacity) {
  AllocatorDriver driver(settings, capacity, count_ids(events));
  StreamReplay result;
  for (std::size_t i = 0; i < events.size() && result.survives(); ++i) {
    if (!apply(events[i], driver)) result.failed = i;
  }
  result.counters = driver.counters();
  return result;
}

std::int64_t smallest_surviving_capacity(std::span<const AllocatorEvent> events, const AllocatorSettings& settings,
                                         std::int64_t step) {
  const AllocatorCounters roomy = replay_events(events, settings).counters;
  return smallest_survivor(roomy.allocated.peak, roomy.reserved.peak, step,
                           [&](std::int64_t capacity) { return replay_events(events, settings, capacity).survives(); });
}

}  // namespace membill
