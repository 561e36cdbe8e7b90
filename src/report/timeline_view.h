// The timeline as pictures draw it: few bands stacked on one another, the steadiest at the bottom.
#ifndef MEMBILL_REPORT_TIMELINE_VIEW_H_
#define MEMBILL_REPORT_TIMELINE_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "membill/report.h"

namespace membill::report {

struct Band {
  std::string item;  // id of the bill; empty: several items together
  std::string label;
  std::vector<std::int64_t> live;  // bytes at each point
};

struct TimelineView {
  std::vector<Timeline::Span> spans;
  std::vector<Band>
      bands;  // from the bottom: weights, optimizer, gradients, activations, loss, temporaries, all others
  std::vector<std::int64_t> sums;  // at each point
  std::size_t peak = 0;            // the point that is highest
};

// The `most` items that are largest at some time have a band each, all others one together. A report without a timeline has a point for
// each moment and one band. Without moments either, there are no points.
[[nodiscard]] TimelineView view_timeline(const Report& report, std::size_t most);

// What the time axis is: "the order of allocations in one step, not seconds; of 8 micro-batches, 2 are shown".
[[nodiscard]] std::string time_note(const Report& report);

}  // namespace membill::report

#endif  // MEMBILL_REPORT_TIMELINE_VIEW_H_
