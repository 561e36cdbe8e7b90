// What lives through the billed step, item by item: a fold for pictures.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/trace.h"

namespace membill {

struct TimelineFold {
  // From one moment mark to the next.
  struct Span {
    std::int32_t moment = 0;  // index into Trace::moments
    std::size_t points = 1;
  };
  std::vector<Span> spans;                        // in time order
  std::vector<std::vector<std::int64_t>> points;  // of all spans, one after the other: bytes by ItemId
};

// The highest point of each stretch of about equally many events, `points` of them in all, or somewhat more: every span has one at least.
// So the highest of all points is the peak of fold_peak(), and the highest of a moment's points that moment's. Of micro-batches that
// repeat, one is shown.
[[nodiscard]] TimelineFold fold_timeline(const Trace& trace, std::span<const std::int64_t> bytes, std::size_t points);

}  // namespace membill
