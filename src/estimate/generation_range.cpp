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

bool is_cache(const LineItem& item) { return item.id == kCache; }

// Of the cache: what full completions leave in it, and what prompts alone do.
std::int64_t shortest_cache(std::int64_t full, const TrainingPlan& plan) {
  return full / plan.seq * prompt_tokens(plan);
}

// The highest moment that is (not) the generation.
std::int64_t highest(const Report& report, bool generating) {
  std::int64_t most = 0;
  for (const Moment& moment : report.moments)
    if ((moment.name == kMoment) == generating) most = std::max(most, moment.requested);
  return most;
}

}  // namespace

std::optional<GenerationRange> generation_range(const Report& report, const ModelSpec& model,
                                                const TrainingPlan& plan) {
  const auto cache = std::find_if(report.items.begin(), report.items.end(), is_cache);
  if (!generates(plan.stage) || cache == report.items.end() || !cache->bytes) return std::nullopt;
  const std::int64_t generating = highest(report, true), full = *cache->bytes;
  const std::int64_t sorted = checked_mul(checked_mul(kSortedBytes, rows_of_generation(plan)), model.vocab);
  return GenerationRange{generating - (full - shortest_cache(full, plan)), checked_add(generating, sorted)};
}

void mark_generation(Report& report, const ModelSpec& model, const TrainingPlan& plan) {
  const std::optional<GenerationRange> range = generation_range(report, model, plan);
  if (!range) return;
  LineItem& cache = *std::find_if(report.items.begin(), report.items.end(), is_cache);
  cache.low = shortest_cache(*cache.bytes, plan);
  cache.high = *cache.bytes;
  const std::int64_t training = highest(report, false);
  report.assumptions.push_back(
      "generation is a range: its low end is completions that end at once, its high end full ones drawn with top_p or "
      "top_k");
  widen(report, std::max(training, range->low));
  widen(report, std::max(training, range->high));
}

}  // namespace membill
