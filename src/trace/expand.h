// The events of a trace with loops expanded: what really happens, one event after another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/trace.h"
#include "trace/walk.h"

namespace membill {

// One expanded event. A tensor is a dense number: the same in its allocation and its release, unique among those alive.
struct FlatEvent {
  EventKind kind = EventKind::allocate;  // never loop or end_loop
  std::int32_t number = 0;               // tensor; moment: index into Trace::moments
  SizeId size = 0;
  std::int16_t stream = 0;  // allocate: that asks
};

struct FlatTrace {
  std::vector<FlatEvent> events;
  std::int32_t tensors = 0;  // numbers are below this
  std::size_t billed_from = 0;
};

// Every event that walk.h visits, kept.
[[nodiscard]] FlatTrace expand(const Trace& trace, std::span<const std::int64_t> bytes,
                               std::int64_t repeats = kWalkedRepeats);

}  // namespace membill
