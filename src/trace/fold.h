// Folds over a trace: the peak, what lives there, the moments. Loops are folded, not expanded: a loop's highest point is in its
// first or its last turn.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/trace.h"

namespace membill {

// Highest and last running sum between one moment mark and the next, over all turns, from Trace::billed_from on.
struct MomentFold {
  std::int32_t moment = 0;  // index into Trace::moments
  std::int64_t highest = 0;
  std::int64_t end = 0;  // at its last occurrence
};

struct PeakFold {
  std::int64_t highest = 0;
  std::size_t at = 0;  // index of the allocation after which the sum is highest (of the first turn that reaches it)
  std::int32_t moment = 0;          // index into Trace::moments
  std::vector<MomentFold> moments;  // in order of first occurrence
  std::int64_t building = 0;        // highest of the first moment (building)
  std::int64_t built = 0;           // what lives when that is over
};

// `bytes[i]` is what size i counts as: requested bytes, or blocks of the allocator. Events before billed_from only sum up.
[[nodiscard]] PeakFold fold_peak(const Trace& trace, std::span<const std::int64_t> bytes);

// The same of each item's tensors alone, by ItemId; `at` is of no use there.
[[nodiscard]] std::vector<PeakFold> fold_items(const Trace& trace, std::span<const std::int64_t> bytes);

// One item's share of what lives right after event `at`: the sum over `parts` of times * size.
struct LiveItem {
  ItemId item = 0;
  struct Part {
    SizeId size = 0;
    Size times;  // how many such tensors, symbolic in loop counts
  };
  std::vector<Part> parts;
  Size bytes;  // the sum as one polynomial
};

// The live set right after event `at` (as fold_peak found it), by item, in order of item id; items with nothing are left out.
[[nodiscard]] std::vector<LiveItem> live_at(const Trace& trace, std::span<const std::int64_t> bytes, std::size_t at);

}  // namespace membill
