// What a stage's generation takes, as a range: how long completions get, and how tokens are drawn, the plan does not say.
#pragma once

#include <cstdint>
#include <optional>

#include "membill/model_spec.h"
#include "membill/report.h"
#include "membill/training_plan.h"

namespace membill {

// Requested bytes of the generation's highest moment.
struct GenerationRange {
  std::int64_t low = 0, high = 0;
};

// Of a report with items and moments: completions that end at once, and full ones drawn with top_p or top_k. Nothing where the stage
// generates nothing, or vLLM does.
[[nodiscard]] std::optional<GenerationRange> generation_range(const Report& report, const ModelSpec& model,
                                                              const TrainingPlan& plan);

// Of a report with items, moments and totals: the cache of keys and values gets its low end, and totals widen where generation
// decides them. Nothing where the stage generates nothing, or vLLM does.
void mark_generation(Report& report, const ModelSpec& model, const TrainingPlan& plan);

}  // namespace membill
