#include "trace/free_blocks.h"

#include <utility>

namespace membill {
namespace {

constexpr std::size_t kLongestRun = 64;

bool lies_before(const FreeBlocks::Entry& entry, std::int64_t size, std::int64_t address) {
  return entry.size < size || (entry.size == size && entry.address < address);
}

// How many of `count` rising items are before. Which way a step goes is not predictable, so it is not a branch.
template <typename Item, typename Before>
std::size_t count_before(const Item* items, std::size_t count, Before before) {
  const Item* first = items;
  while (count > 0) {
    const std::size_t half = (count + 1) / 2;
    first += before(first[half - 1]) ? half : 0;
    count -= half;
  }
  return static_cast<std::size_t>(first - items);
}

}  // namespace

FreeBlocks::Position FreeBlocks::first_from(std::int64_t size, std::int64_t address) const {
  const std::size_t run = count_before(runs_.data(), runs_.size(),
                                       [=](const Run& items) { return lies_before(items.back(), size, address); });
  if (run == runs_.size()) return end();
  const Run& items = runs_[run];
  return {run, count_before(items.data(), items.size(),
                            [=](const Entry& entry) { return lies_before(entry, size, address); })};
}

void FreeBlocks::insert(const Entry& entry) {
  Position place = first_from(entry.size, entry.address);
  if (place == end()) {
    if (runs_.empty()) runs_.emplace_back();
    place = {runs_.size() - 1, runs_.back().size()};
  }
  Run& run = runs_[place.run];
  run.insert(run.begin() + static_cast<std::ptrdiff_t>(place.offset), entry);
  if (run.size() <= kLongestRun) return;
  Run upper(run.begin() + kLongestRun / 2, run.end());
  run.resize(kLongestRun / 2);
  runs_.insert(runs_.begin() + static_cast<std::ptrdiff_t>(place.run) + 1, std::move(upper));
}

void FreeBlocks::erase(Position p) {
  Run& run = runs_[p.run];
  run.erase(run.begin() + static_cast<std::ptrdiff_t>(p.offset));
  if (run.empty()) runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(p.run));
}

}  // namespace membill
