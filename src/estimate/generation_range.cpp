#include "estimate/generation_range.h"

#include <algorithm>

#include "blocks/stage_args.h"
#include "estimate/code_range.h"
#include "estimate/rollout.h"

namespace membill {
namespace {

constexpr std::string_view kMoment = "generate", kCache = "kv_cache";

// Sampling with top_k or top_p sorts the scores: values, indices, probabilities and their sums (transformers 5.24
// generation/logits_process.py TopPLogitsWarper).
constexpr std::int64_t kSortedBytes = 4 + 8 + 4 + 4;

std::int64_t prompt_tokens(const TrainingPlan& plan) {
  if (plan.completion) return plan.seq - *plan.completion;
  return plan.prompt.value_or(plan.seq / 2);
}

std::int64_t rows_of_generation(const TrainingPlan& plan) {
  return checked_mul(plan.batch, stage_count(plan, "steps_per_generation").value_or(plan.accumulate));
}

LineItem* find_cache(Report& report) {
  const auto found =
      std::find_if(report.items.begin(), report.items.end(), [](const LineItem& item) { return item.id == kCache; });
  return found == report.items.end() ? nullptr : &*found;
}

// The highest moment that is (not) the generation.
std::int64_t highest(const Report& report, bool generating) {
  std::int64_t most = 0;
  for (const Moment& moment : report.moments)
    if ((moment.name == kMoment) == generating) most = std::max(most, moment.requested);
  return most;
}

}  // namespace

void mark_generation(Report& report, const ModelSpec& model, const TrainingPlan& plan) {
  LineItem* cache = find_cache(report);
  if (!generates(plan.stage) || cache == nullptr || !cache->bytes) return;
  const std::int64_t full = *cache->bytes, shortest = full / plan.seq * prompt_tokens(plan),
                     sorted = checked_mul(checked_mul(kSortedBytes, rows_of_generation(plan)), model.vocab);
  cache->low = shortest;
  cache->high = full;
  const std::int64_t generating = highest(report, true), training = highest(report, false);
  const std::int64_t least = std::max(training, generating - (full - shortest)),
                     most = std::max(training, checked_add(generating, sorted));
  report.assumptions.push_back(
      "generation is a range: its low end is completions that end at once, its high end full ones drawn with top_p or "
      "top_k");
  widen(report, least);
  widen(report, most);
}

}  // namespace membill
