#include "estimate/layer_units.h"

#include <algorithm>

namespace membill {
namespace {

constexpr std::int64_t kLongestPeriod = 12;
constexpr std::int64_t kFewestUnits = 5;  // below, four simulated units save nothing

std::int64_t repeats(const std::vector<std::int32_t>& alike, std::int64_t first, std::int64_t length) {
  const auto layers = static_cast<std::int64_t>(alike.size());
  std::int64_t count = 1;
  for (std::int64_t start = first + length; start + length <= layers; start += length, ++count)
    if (!std::equal(alike.begin() + first, alike.begin() + first + length, alike.begin() + start)) break;
  return count;
}

}  // namespace

std::vector<LayerRun> find_runs(const std::vector<std::int32_t>& alike, bool expand) {
  const auto layers = static_cast<std::int64_t>(alike.size());
  std::vector<LayerRun> runs;
  for (std::int64_t at = 0; at < layers;) {
    LayerRun best{at, 1, 1};
    for (std::int64_t length = 1; !expand && length <= kLongestPeriod && at + length <= layers; ++length) {
      const std::int64_t count = repeats(alike, at, length);
      if (count >= kFewestUnits && count * length > best.count * best.length) best = {at, length, count};
    }
    runs.push_back(best);
    at += best.count * best.length;
  }
  return runs;
}

}  // namespace membill
