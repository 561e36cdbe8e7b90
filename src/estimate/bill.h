// The bill of one simulated rank: items, moments and the peak, all folds of its trace.
#pragma once

#include <string>
#include <vector>

#include "estimate/simulation.h"
#include "membill/report.h"
#include "trace/fold.h"

namespace membill {

struct Bill {
  std::string rank;                 // "rank 0"
  std::vector<std::int64_t> bytes;  // of every size of the trace, as asked for
  PeakFold peak;
  std::vector<LineItem> items;  // by at_peak, highest first
  std::vector<Moment> moments;  // allocated is filled in by the replay
  std::string peak_moment;
};

// Of the rank that a report shows; its lines are in the order of the bill's.
[[nodiscard]] Timeline make_timeline(const Simulation& job, const Bill& bill);

[[nodiscard]] Bill make_bill(const Simulation& job, const TrainingPlan& plan, const Hardware& hardware);

}  // namespace membill
