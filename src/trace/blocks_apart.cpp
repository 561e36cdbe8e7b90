#include "trace/blocks_apart.h"

#include <algorithm>
#include <vector>

#include "trace/trace.h"

namespace membill {
namespace {

std::int64_t whole(std::int64_t bytes, std::int64_t unit) { return (bytes + unit - 1) / unit * unit; }

class BlocksApart {
 public:
  BlocksApart(const Trace& trace, std::span<const std::int64_t> bytes, const AllocatorSettings& settings);

  void run() { walk(0, trace_.events.size()); }

  [[nodiscard]] std::int64_t bytes() const;
  // The largest block that was in use since the cache was emptied.
  [[nodiscard]] std::int64_t largest() const;

 private:
  struct Class {
    std::int64_t size = 0, used = 0, most = 0;
  };
  static constexpr std::int32_t kEmpty = -1;

  void walk(std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      const Event& event = trace_.events[i];
      switch (event.kind) {
        case EventKind::allocate: use(event.size, 1); break;
        case EventKind::release: use(event.size, -1); break;
        case EventKind::loop:
          walk_loop(i);
          i = static_cast<std::size_t>(event.slot);
          break;
        case EventKind::empty_cache:  // blocks that nothing uses are given back
          for (Class& one : classes_) one.most = one.used;
          break;
        case EventKind::moment:
        case EventKind::end_loop: break;
      }
    }
  }

  // From turn to turn each count grows or falls by the same: the first and the last turn hold the most.
  void walk_loop(std::size_t loop) {
    const auto end = static_cast<std::size_t>(trace_.events[loop].slot);
    const std::int64_t turns = bytes_[static_cast<std::size_t>(trace_.events[loop].size)];
    const std::size_t outer = before_.size();
    for (const Class& one : classes_) before_.push_back(one.used);
    walk(loop + 1, end);
    for (std::size_t i = 0; turns > 2 && i < classes_.size(); ++i)
      classes_[i].used += (turns - 2) * (classes_[i].used - before_[outer + i]);
    before_.resize(outer);
    if (turns > 1) walk(loop + 1, end);
  }

  void use(SizeId size, std::int64_t change) {
    const std::int32_t place = places_[static_cast<std::size_t>(size)];
    if (place == kEmpty) return;
    Class& one = classes_[static_cast<std::size_t>(place)];
    one.used += change;
    one.most = std::max(one.most, one.used);
  }

  const Trace& trace_;
  std::span<const std::int64_t> bytes_;
  std::vector<std::int64_t> before_;  // counts at the beginnings of the open loops
  std::vector<Class> classes_;        // by size
  std::vector<std::int32_t> places_;  // by SizeId: its class, kEmpty for no bytes
};

BlocksApart::BlocksApart(const Trace& trace, std::span<const std::int64_t> bytes, const AllocatorSettings& settings)
    : trace_(trace), bytes_(bytes) {
  std::vector<std::int64_t> sizes;
  for (const std::int64_t asked : bytes)
    if (asked > 0) sizes.push_back(rounded_request(settings, asked));
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  for (const std::int64_t size : sizes) classes_.push_back({size, 0, 0});
  for (const std::int64_t asked : bytes) {
    const std::int64_t size = asked > 0 ? rounded_request(settings, asked) : 0;
    const auto at = std::lower_bound(sizes.begin(), sizes.end(), size);
    places_.push_back(asked > 0 ? static_cast<std::int32_t>(at - sizes.begin()) : kEmpty);
  }
}

std::int64_t BlocksApart::bytes() const {
  std::int64_t small = 0, middle = 0, large = 0;
  for (const Class& one : classes_) {
    const bool own_segment = one.size >= kMinOwnSegmentBytes;
    std::int64_t& sum = one.size <= kSmallRequestBytes ? small : own_segment ? large : middle;
    sum += one.most * (own_segment ? whole(one.size, kOwnSegmentUnitBytes) : one.size);
  }
  return whole(small, kSmallSegmentBytes) + whole(middle, 20 * kAllocatorMiB) + large;
}

std::int64_t BlocksApart::largest() const {
  for (auto one = classes_.rbegin(); one != classes_.rend(); ++one)
    if (one->most > 0) return one->size;
  return 0;
}

}  // namespace

std::int64_t reserved_apart(const Trace& trace, std::span<const std::int64_t> bytes,
                            const AllocatorSettings& settings) {
  BlocksApart apart(trace, bytes, settings);
  apart.run();
  return apart.bytes() + apart.largest();
}

}  // namespace membill
