#include "trace/free_blocks.h"

#include <algorithm>

namespace membill {
namespace {

constexpr std::size_t kLongestRun = 128;

}  // namespace

std::size_t FreeBlocks::Places::run_of(std::int64_t address) const {
  const auto run = std::partition_point(runs_.begin(), runs_.end() - 1,
                                        [address](const Run& higher) { return higher.back().address > address; });
  return static_cast<std::size_t>(run - runs_.begin());
}

void FreeBlocks::Places::insert(const Place& place) {
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

std::pair<std::size_t, std::size_t> FreeBlocks::Places::find(std::int64_t address) const {
  const std::size_t number = run_of(address);
  const Run& run = runs_[number];
  const auto place =
      std::partition_point(run.begin(), run.end(), [address](const Place& other) { return other.address > address; });
  return {runs_.size() - 1 - number, static_cast<std::size_t>(run.end() - place) - 1};
}

void FreeBlocks::Places::erase(std::size_t number, std::size_t offset) {
  const auto run = runs_.end() - 1 - static_cast<std::ptrdiff_t>(number);
  run->erase(run->end() - 1 - static_cast<std::ptrdiff_t>(offset));
  if (run->empty() && runs_.size() > 1) runs_.erase(run);
}

void FreeBlocks::insert(const Entry& entry) {
  const std::size_t rank = rank_of(entry.size);
  if (rank == sizes_.size() || sizes_[rank] != entry.size) {
    if (spare_.empty()) {
      spare_.push_back(static_cast<std::uint32_t>(places_.size()));
      places_.emplace_back();
    }
    sizes_.insert(sizes_.begin() + static_cast<std::ptrdiff_t>(rank), entry.size);
    order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(rank), spare_.back());
    spare_.pop_back();
  }
  places_[order_[rank]].insert({entry.address, entry.block});
}

void FreeBlocks::erase(std::int64_t size, std::int64_t address) {
  const std::size_t rank = rank_of(size);
  const auto [run, offset] = places_[order_[rank]].find(address);
  erase(Position{rank, run, offset});
}

void FreeBlocks::erase(Position p) {
  Places& places = places_[order_[p.size]];
  places.erase(p.run, p.offset);
  if (!places.empty()) return;
  spare_.push_back(order_[p.size]);
  sizes_.erase(sizes_.begin() + static_cast<std::ptrdiff_t>(p.size));
  order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(p.size));
}

}  // namespace membill
