// What a stage's generation takes, as a range: how long completions get, and how tokens are drawn, the plan does not say.
#pragma once

#include "membill/model_spec.h"
#include "membill/report.h"
#include "membill/training_plan.h"

namespace membill {

// Of a report with items, moments and totals: the cache of keys and values gets its low end, and totals widen where generation
// decides them. Nothing where the stage generates nothing, or vLLM does.
void mark_generation(Report& report, const ModelSpec& model, const TrainingPlan& plan);

}  // namespace membill
