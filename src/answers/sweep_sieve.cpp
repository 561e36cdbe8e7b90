#include <algorithm>

#include "membill/sweep.h"

namespace membill {
namespace {

std::int64_t memory_of(const SweepCase& one) { return one.figures->device.value_or(one.figures->requested); }

bool more_tokens(const SweepCase& a, const SweepCase& b) {
  if (a.tokens != b.tokens) return a.tokens > b.tokens;
  if (memory_of(a) != memory_of(b)) return memory_of(a) < memory_of(b);
  return a.number < b.number;
}

}  // namespace

SweepSieve::SweepSieve(SweepFilter filter, std::function<std::int64_t(ParetoKey, const SweepCase&)> value)
    : filter_(std::move(filter)), value_(std::move(value)) {}

bool SweepSieve::take(const SweepCase& one) {
  if (filter_.fit || filter_.needs_all()) {
    if (!one.figures) return false;
    const Answer answer = one.figures->answer;
    if (filter_.fit && answer != Answer::fits && answer != Answer::tight) return false;
  }
  if (!filter_.needs_all()) return true;
  if (!filter_.pareto.empty()) {
    keep_front(one);
    return false;
  }
  held_.push_back(one);
  if (held_.size() >= 2 * filter_.top + 1024) keep_best(filter_.top);
  return false;
}

std::vector<SweepCase> SweepSieve::finish() {
  if (filter_.top > 0) keep_best(filter_.top);
  return std::move(held_);
}

// Whether `a` is as good as `b` in every key, and better in one.
bool SweepSieve::beats(const SweepCase& a, const SweepCase& b) const {
  bool better = false;
  for (const ParetoKey key : filter_.pareto) {
    const bool is_cost = key == ParetoKey::memory || key == ParetoKey::gpus;
    const std::int64_t x = key == ParetoKey::memory ? memory_of(a) : value_(key, a);
    const std::int64_t y = key == ParetoKey::memory ? memory_of(b) : value_(key, b);
    if (x == y) continue;
    if ((x < y) != is_cost) return false;
    better = true;
  }
  return better;
}

void SweepSieve::keep_front(const SweepCase& one) {
  if (std::any_of(held_.begin(), held_.end(), [&](const SweepCase& other) { return beats(other, one); })) return;
  held_.erase(std::remove_if(held_.begin(), held_.end(), [&](const SweepCase& other) { return beats(one, other); }),
              held_.end());
  held_.push_back(one);
}

void SweepSieve::keep_best(std::size_t most) {
  std::sort(held_.begin(), held_.end(), more_tokens);
  if (held_.size() > most) held_.resize(most);
}

}  // namespace membill
