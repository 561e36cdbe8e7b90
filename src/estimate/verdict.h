// Totals and the verdict: the replay of the trace on the named card.
#pragma once

#include "estimate/bill.h"
#include "membill/estimate.h"

namespace membill {

// Fills totals, ranks, allocated bytes of the moments, and the verdict.
void judge(Report& report, const Simulation& job, const Bill& bill, const TrainingPlan& plan, const Hardware& hardware,
           const EstimateOptions& options);

}  // namespace membill
