#include "trace/allocator.h"

#include <algorithm>
#include <limits>

namespace membill {

namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

std::int64_t whole_units(std::int64_t bytes) {
  return (bytes + kOwnSegmentUnitBytes - 1) / kOwnSegmentUnitBytes * kOwnSegmentUnitBytes;
}

void add(Gauge& gauge, std::int64_t amount) {
  gauge.current += amount;
  gauge.peak = std::max(gauge.peak, gauge.current);
}

void raise_peak(Gauge& gauge, std::int64_t amount) { gauge.peak = std::max(gauge.peak, gauge.current + amount); }

// All bits of the result depend on all of `x` (the finaliser of splitmix64).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

std::int64_t allowed_by(const AllocatorSettings& settings, std::optional<std::int64_t> capacity) {
  if (!capacity || settings.per_process_memory_fraction.value_or(1) >= 1) return kUnlimited;
  return static_cast<std::int64_t>(*settings.per_process_memory_fraction * static_cast<double>(*capacity));
}

}  // namespace

CachingAllocator::CachingAllocator(const AllocatorSettings& settings, std::optional<std::int64_t> capacity)
    : settings_(settings),
      capacity_(capacity.value_or(kUnlimited)),
      allowed_(allowed_by(settings, capacity)),
      max_split_(settings.max_split_size_bytes.value_or(kUnlimited)),
      max_non_split_rounding_(settings.max_non_split_rounding_bytes.value_or(settings.large_segment_bytes)),
      collects_garbage_(settings.garbage_collection_threshold > 0 && allowed_ != kUnlimited) {}

SizedRequest CachingAllocator::sized(std::int64_t bytes) const {
  if (bytes == 0) return {};
  const std::int64_t block = rounded_request(settings_, bytes);
  return {bytes, block, segment_bytes_for(settings_, block)};
}

std::optional<BlockHandle> CachingAllocator::allocate(const SizedRequest& sized, int stream) {
  const Request request = request_for(sized, stream);
  const Pool& pool = pools_[static_cast<std::size_t>(request.pool)];
  if (collects_garbage_) ++lookups_[pool.small ? 0 : 1];
  const auto place = best_fit(pool, request);
  if (place != pool.cached.end()) return hand_out_cached(place, request, sized.bytes);
  if (collects_garbage_) collect_garbage();
  Index found = take_new(request);
  if (found == kNone && release_oversize(request)) found = take_new(request);
  if (found == kNone) {
    release_cache();
    ++counters_.retries;
    found = take_new(request);
  }
  if (found == kNone) {
    ++counters_.out_of_memory;
    return std::nullopt;
  }
  return hand_out_new(found, request, sized.bytes);
}

bool CachingAllocator::touch(const SizedRequest& sized, int stream) {
  // A cached block is split and joined again: nothing changes but peaks. Garbage collection counts lookups, and expandable
  // segments map pages.
  if (!collects_garbage_ && !settings_.expandable_segments) {
    const Request request = request_for(sized, stream);
    const Pool& pool = pools_[static_cast<std::size_t>(request.pool)];
    const auto place = best_fit(pool, request);
    if (place != pool.cached.end()) {
      const Block& found = blocks_[static_cast<std::size_t>(pool.cached.at(place).block)];
      const std::int64_t size = should_split(found, request.size) ? request.size : found.size;
      raise_peak(counters_.requested, sized.bytes);
      raise_peak(counters_.allocated, size);
      raise_peak(counters_.active, size);
      return true;
    }
  }
  const std::optional<BlockHandle> block = allocate(sized, stream);
  if (block) release(*block);
  return block.has_value();
}

void CachingAllocator::release(BlockHandle handle) {
  if (!holds(handle)) return;
  Block& block = blocks_[static_cast<std::size_t>(handle.index)];
  if (block.allocated) add(counters_.allocated, -block.size);
  block.allocated = false;
  free_block(handle.index);
}

void CachingAllocator::retire(BlockHandle handle) {
  if (!holds(handle)) return;
  Block& block = blocks_[static_cast<std::size_t>(handle.index)];
  if (!block.allocated) return;
  add(counters_.allocated, -block.size);
  block.allocated = false;
  retired_.push_back(handle);
}

void CachingAllocator::empty_cache() { release_cache(); }

void CachingAllocator::reset_peaks() {
  for (Gauge* gauge :
       {&counters_.requested, &counters_.allocated, &counters_.active, &counters_.reserved, &counters_.segments}) {
    gauge->peak = gauge->current;
  }
}

std::int64_t CachingAllocator::largest_free_block() const {
  std::int64_t largest = 0;
  for (const Pool& pool : pools_) {
    if (!pool.cached.empty()) largest = std::max(largest, pool.cached.at(pool.cached.previous(pool.cached.end())).size);
  }
  return largest;
}

std::int64_t CachingAllocator::block_bytes(BlockHandle handle) const {
  return holds(handle) ? blocks_[static_cast<std::size_t>(handle.index)].size : 0;
}

std::vector<BlockView> CachingAllocator::blocks() const {
  std::vector<BlockView> views;
  for (const Block& b : blocks_) {
    const Pool& pool = pools_[static_cast<std::size_t>(b.pool)];
    if (b.exists) views.push_back({b.address, b.size, pool.stream, pool.small, b.active, b.mapped});
  }
  std::ranges::sort(views, {}, &BlockView::address);
  return views;
}

std::uint64_t CachingAllocator::state_digest() const {
  if (!retired_.empty() || collects_garbage_) return 0;
  std::uint64_t digest = mixed(static_cast<std::uint64_t>(counters_.retries) + 1);
  for (const Block& b : blocks_) {
    if (!b.exists) continue;
    const std::uint64_t place = mixed(static_cast<std::uint64_t>(b.address)) + static_cast<std::uint64_t>(b.size);
    const int kind = b.pool * 4 + (b.active ? 2 : 0) + (b.mapped ? 1 : 0);
    digest += mixed(mixed(place) + static_cast<std::uint64_t>(kind));
  }
  return digest;
}

void CachingAllocator::add_stream(int stream) {
  streams_.push_back(stream);
  pools_.push_back({stream, true, {}, {}});
  pools_.push_back({stream, false, {}, {}});
}

inline CachingAllocator::Request CachingAllocator::request_for(const SizedRequest& sized, int stream) {
  return {sized.block, sized.segment, pool_for(stream, sized.block <= kSmallRequestBytes)};
}

// The smallest cached block that the request may take, or end().
inline FreeBlocks::Position CachingAllocator::best_fit(const Pool& pool, const Request& request) const {
  auto place = pool.cached.first_of(request.size);
  if (place == pool.cached.end()) return place;
  if (settings_.expandable_segments) place = skip_to_tighter(pool, place);
  const std::int64_t size = pool.cached.at(place).size;
  const bool fits = request.size < max_split_ ? size < max_split_ : size < request.size + max_non_split_rounding_;
  return fits ? place : pool.cached.end();
}

CachingAllocator::Index CachingAllocator::take_new(const Request& request) {
  if (request.segment > allowed_ - counters_.reserved.current) return kNone;
  if (settings_.expandable_segments) return take_expandable(request);
  if (!charge(request.segment)) return kNone;
  add(counters_.segments, 1);
  add(counters_.reserved, request.segment);
  Block block;
  block.address = fresh_addresses(request.segment);
  block.size = request.segment;
  block.pool = request.pool;
  return new_block(block);
}

// What is left of a cached block that is split keeps its place in the cache.
inline BlockHandle CachingAllocator::hand_out_cached(FreeBlocks::Position place, const Request& request,
                                                     std::int64_t bytes) {
  FreeBlocks& cached = pools_[static_cast<std::size_t>(request.pool)].cached;
  const Index found = cached.at(place).block;
  const bool was_split = is_split(blocks_[static_cast<std::size_t>(found)]);
  if (!should_split(blocks_[static_cast<std::size_t>(found)], request.size)) {
    cached.erase(place);
    return hand_out(found, found, was_split, bytes);
  }
  const Index given = split_front(found, request.size);
  cached.replace(place, entry_to_cache(found));
  return hand_out(found, given, was_split, bytes);
}

BlockHandle CachingAllocator::hand_out_new(Index found, const Request& request, std::int64_t bytes) {
  const bool was_split = is_split(blocks_[static_cast<std::size_t>(found)]);
  if (!should_split(blocks_[static_cast<std::size_t>(found)], request.size))
    return hand_out(found, found, was_split, bytes);
  const Index given = split_front(found, request.size);
  cache(found);
  return hand_out(found, given, was_split, bytes);
}

// `given` is all of `found`, or was cut from its front.
inline BlockHandle CachingAllocator::hand_out(Index found, Index given, bool was_split, std::int64_t bytes) {
  Block& block = blocks_[static_cast<std::size_t>(given)];
  if (!block.expandable) {
    if (was_split)
      counters_.inactive_split -= block.size;
    else if (given != found)
      counters_.inactive_split += blocks_[static_cast<std::size_t>(found)].size;
  }
  block.allocated = true;
  block.active = true;
  block.requested = bytes;
  add(counters_.requested, bytes);
  add(counters_.allocated, block.size);
  add(counters_.active, block.size);
  return {given, block.serial};
}

bool CachingAllocator::should_split(const Block& block, std::int64_t size) const {
  const std::int64_t rest = block.size - size;
  if (pools_[static_cast<std::size_t>(block.pool)].small || settings_.expandable_segments)
    return rest >= kMinBlockBytes;
  return size < max_split_ && rest > kSmallRequestBytes;
}

// The first `size` bytes of `found` become a block of their own; the rest is for the cache.
CachingAllocator::Index CachingAllocator::split_front(Index found, std::int64_t size) {
  Block front = blocks_[static_cast<std::size_t>(found)];
  front.size = size;
  front.next = found;
  const Index given = new_block(front);
  if (front.previous != kNone) blocks_[static_cast<std::size_t>(front.previous)].next = given;
  Block& rest = blocks_[static_cast<std::size_t>(found)];
  rest.previous = given;
  rest.address += size;
  rest.size -= size;
  return given;
}

// A neighbour that joins gives its place in the cache.
void CachingAllocator::free_block(Index index) {
  Block& block = blocks_[static_cast<std::size_t>(index)];
  add(counters_.active, -block.size);
  add(counters_.requested, -block.requested);
  block.active = false;
  ++block.serial;
  std::int64_t merged = 0;
  std::int64_t joined_size = 0, joined_address = 0;
  for (const Index other : {block.previous, block.next}) {
    if (!joins(index, other)) continue;
    if (merged > 0) {
      uncache(other);
    } else {
      joined_size = blocks_[static_cast<std::size_t>(other)].size;
      joined_address = blocks_[static_cast<std::size_t>(other)].address;
    }
    merged += absorb(index, other);
  }
  if (merged == 0)
    cache(index);
  else
    pools_[static_cast<std::size_t>(block.pool)].cached.replace(joined_size, joined_address, entry_to_cache(index));
  if (!block.expandable) counters_.inactive_split += (is_split(block) ? block.size : 0) - merged;
}

// Whether both are free, and mapped or not alike.
inline bool CachingAllocator::joins(Index one, Index other) const {
  if (other == kNone) return false;
  const Block& neighbour = blocks_[static_cast<std::size_t>(other)];
  return !neighbour.active && neighbour.mapped == blocks_[static_cast<std::size_t>(one)].mapped;
}

// `into` grows by its neighbour `other`, which is no more. Gives the bytes that were added.
std::int64_t CachingAllocator::absorb(Index into, Index other) {
  Block& block = blocks_[static_cast<std::size_t>(into)];
  const Block& gone = blocks_[static_cast<std::size_t>(other)];
  if (block.previous == other) {
    block.address = gone.address;
    block.previous = gone.previous;
    if (block.previous != kNone) blocks_[static_cast<std::size_t>(block.previous)].next = into;
  } else {
    block.next = gone.next;
    if (block.next != kNone) blocks_[static_cast<std::size_t>(block.next)].previous = into;
  }
  block.size += gone.size;
  recycle(other);
  return gone.size;
}

void CachingAllocator::try_merge(Index into, Index other) {
  if (!joins(into, other)) return;
  blocks_[static_cast<std::size_t>(other)].mapped ? uncache(other) : remove_unmapped(other);
  absorb(into, other);
}

inline FreeBlocks::Entry CachingAllocator::entry_to_cache(Index index) {
  Block& block = blocks_[static_cast<std::size_t>(index)];
  block.cached_at = lookups_[pools_[static_cast<std::size_t>(block.pool)].small ? 0 : 1];
  return {block.size, block.address, index};
}

void CachingAllocator::cache(Index index) {
  const FreeBlocks::Entry entry = entry_to_cache(index);
  pools_[static_cast<std::size_t>(blocks_[static_cast<std::size_t>(index)].pool)].cached.insert(entry);
}

void CachingAllocator::uncache(Index index) {
  const Block& block = blocks_[static_cast<std::size_t>(index)];
  pools_[static_cast<std::size_t>(block.pool)].cached.erase(block.size, block.address);
}

CachingAllocator::Index CachingAllocator::new_block(const Block& block) {
  Index index = static_cast<Index>(blocks_.size());
  if (spare_.empty()) {
    blocks_.emplace_back();
  } else {
    index = spare_.back();
    spare_.pop_back();
  }
  Block& made = blocks_[static_cast<std::size_t>(index)];
  const std::uint32_t serial = made.serial + 1;
  made = block;
  made.serial = serial;
  made.exists = true;
  return index;
}

void CachingAllocator::recycle(Index index) {
  blocks_[static_cast<std::size_t>(index)].exists = false;
  ++blocks_[static_cast<std::size_t>(index)].serial;
  spare_.push_back(index);
}

bool CachingAllocator::holds(BlockHandle handle) const {
  return handle.index >= 0 && static_cast<std::size_t>(handle.index) < blocks_.size() &&
         blocks_[static_cast<std::size_t>(handle.index)].serial == handle.serial;
}

std::int64_t CachingAllocator::fresh_addresses(std::int64_t bytes) {
  next_address_ += bytes;
  return next_address_ - bytes;
}

// Takes physical memory of the card, which comes in units of 2 MiB.
bool CachingAllocator::charge(std::int64_t bytes) {
  const std::int64_t units = whole_units(bytes);
  if (units > capacity_ - charged_) return false;
  charged_ += units;
  return true;
}

void CachingAllocator::discharge(std::int64_t bytes) { charged_ -= whole_units(bytes); }

}  // namespace membill
