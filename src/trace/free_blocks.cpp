#include "trace/free_blocks.h"

#include <algorithm>

namespace membill {

namespace {

__extension__ using Key = unsigned __int128;

Key key_of(std::int64_t size, std::int64_t address) {
  return static_cast<Key>(static_cast<std::uint64_t>(size)) << 64 | static_cast<std::uint64_t>(address);
}

Key key_of(const FreeBlocks::Entry& entry) { return key_of(entry.size, entry.address); }

}  // namespace

FreeBlocks::Position FreeBlocks::next(Position p) const {
  return p.offset + 1 < runs_[order_[p.run]].count ? Position{p.run, p.offset + 1} : Position{p.run + 1, 0};
}

FreeBlocks::Position FreeBlocks::previous(Position p) const {
  return p.offset > 0 ? Position{p.run, p.offset - 1} : Position{p.run - 1, runs_[order_[p.run - 1]].count - 1};
}

FreeBlocks::Position FreeBlocks::lower_bound(std::int64_t size, std::int64_t address) const {
  const Key key = key_of(size, address);
  std::size_t low = 0;
  for (std::size_t high = order_.size(); low < high;) {
    const std::size_t middle = (low + high) / 2;
    const Run& run = runs_[order_[middle]];
    if (key_of(run.entries[run.count - 1]) < key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == order_.size()) return end();
  // Which way a step goes is not predictable, so it is not a branch.
  const Run& run = runs_[order_[low]];
  const Entry* first = run.entries.data();
  for (std::size_t count = run.count; count > 1;) {
    const std::size_t half = count / 2;
    first += half & (key_of(first[half - 1]) < key ? ~std::size_t{0} : 0);
    count -= half;
  }
  if (key_of(*first) < key) ++first;
  return {low, static_cast<std::size_t>(first - run.entries.data())};
}

void FreeBlocks::insert(const Entry& entry) {
  Position p = lower_bound(entry.size, entry.address);
  if (order_.empty()) {
    order_.push_back(new_run());
  } else if (p == end()) {
    p = {order_.size() - 1, runs_[order_.back()].count};
  }
  if (runs_[order_[p.run]].count == kRunLength) {
    const Position upper = split(p.run);
    if (p.offset > kRunLength / 2) p = {upper.run, p.offset - kRunLength / 2};
  }
  Run& run = runs_[order_[p.run]];
  auto* const place = run.entries.data() + p.offset;
  std::move_backward(place, run.entries.data() + run.count, run.entries.data() + run.count + 1);
  *place = entry;
  ++run.count;
}

void FreeBlocks::erase(Position p) {
  Run& run = runs_[order_[p.run]];
  auto* const place = run.entries.data() + p.offset;
  std::move(place + 1, run.entries.data() + run.count, place);
  if (--run.count == 0) {
    spare_.push_back(order_[p.run]);
    order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(p.run));
  }
}

FreeBlocks::Position FreeBlocks::split(std::size_t run) {
  const std::size_t added = new_run();
  Run& lower = runs_[order_[run]];
  Run& upper = runs_[added];
  const auto middle = lower.entries.begin() + kRunLength / 2;
  std::copy(middle, lower.entries.end(), upper.entries.begin());
  lower.count = kRunLength / 2;
  upper.count = kRunLength - kRunLength / 2;
  order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(run) + 1, added);
  return {run + 1, 0};
}

std::size_t FreeBlocks::new_run() {
  if (spare_.empty()) {
    runs_.emplace_back();
    return runs_.size() - 1;
  }
  const std::size_t run = spare_.back();
  spare_.pop_back();
  runs_[run].count = 0;
  return run;
}

}  // namespace membill
