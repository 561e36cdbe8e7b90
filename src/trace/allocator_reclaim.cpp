// How the model gives memory back to the driver: before a retry, when the cache is emptied, and by age.
#include "trace/allocator.h"

namespace membill {

// Frees cached blocks of max_split_size or more, of the request's pool and stream, until they add up to the request:
// the smallest that suffices alone, else the largest ones together. False when they do not suffice (some may be gone).
bool CachingAllocator::release_oversize(const Request& request) {
  if (!settings_.max_split_size_bytes) return false;
  FreeBlocks& cached = pools_[static_cast<std::size_t>(request.pool)].cached;
  const std::int64_t wanted = request.size < max_split_ ? max_split_ : request.size;
  const auto place = cached.first_of(wanted);
  if (place != cached.end()) {
    if (!blocks_[static_cast<std::size_t>(cached.at(place).block)].expandable) release_segment(cached.at(place).block);
    return true;
  }
  std::int64_t released = 0;
  while (released < wanted && !cached.empty()) {
    const FreeBlocks::Entry largest = cached.at(cached.previous(cached.end()));
    if (largest.size < max_split_ || blocks_[static_cast<std::size_t>(largest.block)].expandable) break;
    released += largest.size;
    release_segment(largest.block);
  }
  return released >= wanted;
}

void CachingAllocator::release_cache() {
  collect_retired();
  for (std::size_t pool = 0; pool < pools_.size(); ++pool) release_pool(static_cast<std::int32_t>(pool));
}

void CachingAllocator::release_pool(std::int32_t pool) {
  const FreeBlocks& cached = pools_[static_cast<std::size_t>(pool)].cached;
  std::vector<Index> whole;
  std::vector<Index> expandable;
  for (auto place = cached.begin(); place != cached.end(); place = cached.next(place)) {
    const Index index = cached.at(place).block;
    const Block& block = blocks_[static_cast<std::size_t>(index)];
    if (block.expandable) {
      expandable.push_back(index);
    } else if (!is_split(block)) {
      whole.push_back(index);
    }
  }
  for (const Index index : whole) release_segment(index);
  for (const Index index : expandable) {
    unmap(index);
    drop_empty_range(index);
  }
}

// What other streams still used is waited for.
void CachingAllocator::collect_retired() {
  for (const BlockHandle handle : retired_) release(handle);
  retired_.clear();
}

// Frees whole cached segments of the large pools that were not reused for longer than average, until `reserved` is
// back under the threshold or none is left.
void CachingAllocator::collect_garbage() {
  const auto threshold =
      static_cast<std::int64_t>(settings_.garbage_collection_threshold * static_cast<double>(allowed_));
  const std::int64_t wanted = counters_.reserved.current - threshold;
  if (wanted <= 0) return;
  double total_age = 0;
  std::int64_t freeable = 0;
  for (const Pool& pool : pools_) {
    if (pool.small) continue;
    for (auto place = pool.cached.begin(); place != pool.cached.end(); place = pool.cached.next(place)) {
      const Block& block = blocks_[static_cast<std::size_t>(pool.cached.at(place).block)];
      if (is_split(block)) continue;
      total_age += static_cast<double>(lookups_[1] - block.cached_at);
      ++freeable;
    }
  }
  std::int64_t freed = 0;
  while (freed < wanted && freeable > 0) {
    const std::int64_t more = collect_older_than(total_age / static_cast<double>(freeable), total_age, freeable);
    if (more == 0) return;
    freed += more;
  }
}

std::int64_t CachingAllocator::collect_older_than(double age, double& total_age, std::int64_t& freeable) {
  std::vector<Index> old;
  for (const Pool& pool : pools_) {
    if (pool.small) continue;
    for (auto place = pool.cached.begin(); place != pool.cached.end(); place = pool.cached.next(place)) {
      const Block& block = blocks_[static_cast<std::size_t>(pool.cached.at(place).block)];
      const auto own_age = static_cast<double>(lookups_[1] - block.cached_at);
      if (is_split(block) || own_age < age) continue;
      total_age -= own_age;
      --freeable;
      old.push_back(pool.cached.at(place).block);
    }
  }
  std::int64_t freed = 0;
  for (const Index index : old) {
    freed += blocks_[static_cast<std::size_t>(index)].size;
    release_segment(index);
  }
  return freed;
}

// cudaFree of a cached block that is a whole segment.
void CachingAllocator::release_segment(Index index) {
  const Block& block = blocks_[static_cast<std::size_t>(index)];
  uncache(index);
  discharge(block.size);
  counters_.segments.current -= 1;
  counters_.reserved.current -= block.size;
  recycle(index);
}

}  // namespace membill
