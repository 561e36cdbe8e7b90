#include "trace/free_blocks.h"

#include <algorithm>

namespace membill {
namespace {

constexpr std::size_t kLongestRun = 128;

}  // namespace

std::size_t FreeBlocks::Higher::run_of(std::int64_t address) const {
  if (runs_.size() == 1) return 0;
  const auto run = std::partition_point(runs_.begin(), runs_.end() - 1,
                                        [address](const Run& higher) { return higher.back().address > address; });
  return static_cast<std::size_t>(run - runs_.begin());
}

const FreeBlocks::Place& FreeBlocks::Higher::at(std::size_t number) const {
  auto run = runs_.rbegin();
  for (; number >= run->size(); ++run) number -= run->size();
  return (*run)[run->size() - 1 - number];
}

void FreeBlocks::Higher::insert(const Place& place) {
  ++count_;
  const std::size_t number = run_of(place.address);
  Run& run = runs_[number];
  const auto after =
      std::partition_point(run.begin(), run.end(), [&](const Place& other) { return other.address > place.address; });
  run.insert(after, place);
  if (run.size() <= kLongestRun) return;
  Run lower(run.begin() + kLongestRun / 2, run.end());
  run.resize(kLongestRun / 2);
  runs_.insert(runs_.begin() + static_cast<std::ptrdiff_t>(number) + 1, std::move(lower));
}

void FreeBlocks::Higher::erase(std::int64_t address) {
  --count_;
  const auto run = runs_.begin() + static_cast<std::ptrdiff_t>(run_of(address));
  run->erase(std::partition_point(run->begin(), run->end(),
                                  [address](const Place& other) { return other.address > address; }));
  if (run->empty() && runs_.size() > 1) runs_.erase(run);
}

FreeBlocks::Place FreeBlocks::Higher::take_lowest() {
  --count_;
  const Place lowest = runs_.back().back();
  runs_.back().pop_back();
  if (runs_.back().empty() && runs_.size() > 1) runs_.pop_back();
  return lowest;
}

void FreeBlocks::add_higher(OfSize& one, const Place& place) {
  if (one.higher == kNone) {
    if (spare_.empty()) {
      spare_.push_back(static_cast<std::int32_t>(higher_.size()));
      higher_.emplace_back();
    }
    one.higher = spare_.back();
    spare_.pop_back();
  }
  higher_[static_cast<std::size_t>(one.higher)].insert(place);
}

void FreeBlocks::leave_if_empty(OfSize& one) {
  if (higher_[static_cast<std::size_t>(one.higher)].count() > 0) return;
  spare_.push_back(one.higher);
  one.higher = kNone;
}

void FreeBlocks::erase(std::int64_t size, std::int64_t address) {
  const std::size_t rank = rank_of(size);
  OfSize& one = sizes_[rank];
  if (one.address == address) return erase_lowest(rank);
  higher_[static_cast<std::size_t>(one.higher)].erase(address);
  leave_if_empty(one);
}

void FreeBlocks::erase(Position p) {
  if (p.place == 0) return erase_lowest(p.size);
  erase(sizes_[p.size].size, at(p).address);
}

}  // namespace membill
