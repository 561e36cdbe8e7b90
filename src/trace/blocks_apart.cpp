#include "trace/blocks_apart.h"

#include <algorithm>
#include <vector>

#include "trace/walk.h"

namespace membill {
namespace {

std::int64_t whole(std::int64_t bytes, std::int64_t unit) { return (bytes + unit - 1) / unit * unit; }

class BlocksApart {
 public:
  BlocksApart(std::span<const std::int64_t> bytes, const AllocatorSettings& settings);

  void allocate(std::int32_t, const Event& event) { use(event.size); }
  void release(std::int32_t, const Event& event) {
    const std::int32_t place = places_[static_cast<std::size_t>(event.size)];
    if (place != kEmpty) --classes_[static_cast<std::size_t>(place)].used;
  }
  void touch(std::int32_t tensor, const Event& event) {
    allocate(tensor, event);
    release(tensor, event);
  }
  void moment(std::int32_t, bool) {}
  // Blocks that nothing uses are given back.
  void empty_cache() {
    for (Class& one : classes_) one.most = one.used;
  }
  [[nodiscard]] static bool done() { return false; }
  // How many blocks of each size are in use.
  [[nodiscard]] std::uint64_t state() const {
    std::uint64_t digest = 1;
    for (const Class& one : classes_) digest = digest * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(one.used) + 1;
    return digest;
  }

  [[nodiscard]] std::int64_t bytes() const;
  // The largest block that was in use since the cache was emptied.
  [[nodiscard]] std::int64_t largest() const;

 private:
  struct Class {
    std::int64_t size = 0, used = 0, most = 0;
  };
  static constexpr std::int32_t kEmpty = -1;

  void use(SizeId size) {
    const std::int32_t place = places_[static_cast<std::size_t>(size)];
    if (place == kEmpty) return;
    Class& one = classes_[static_cast<std::size_t>(place)];
    one.most = std::max(one.most, ++one.used);
  }

  std::vector<Class> classes_;        // by size
  std::vector<std::int32_t> places_;  // by SizeId: its class, kEmpty for no bytes
};

BlocksApart::BlocksApart(std::span<const std::int64_t> bytes, const AllocatorSettings& settings) {
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
  BlocksApart apart(bytes, settings);
  TraceWalk<BlocksApart>(trace, bytes).run(apart);
  return apart.bytes() + apart.largest();
}

}  // namespace membill
