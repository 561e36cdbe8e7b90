// Expandable segments: one range of addresses a pool and stream, mapped page by page from its lowest free place.
#include <algorithm>

#include "membill/units.h"
#include "trace/allocator.h"

namespace membill {

namespace {

constexpr std::int64_t kUnlimitedRangeBytes = std::int64_t{1} << 50;

}  // namespace

std::int64_t CachingAllocator::page_bytes(const Pool& pool) const {
  return pool.small ? kSmallSegmentBytes : settings_.large_segment_bytes;
}

// Best fit counts a block at the end of the mapped part as large as it could grow, so a later, larger block may be tighter.
FreeBlocks::Position CachingAllocator::skip_to_tighter(const Pool& pool, FreeBlocks::Position first) const {
  const auto grown = [this, &pool](FreeBlocks::Position p) {
    const Block& block = blocks_[static_cast<std::size_t>(pool.cached.at(p).block)];
    if (block.next == kNone || blocks_[static_cast<std::size_t>(block.next)].mapped) return block.size;
    return block.size + blocks_[static_cast<std::size_t>(block.next)].size;
  };
  auto place = first;
  for (auto next = pool.cached.next(place); next != pool.cached.end() && grown(next) < grown(place);
       next = pool.cached.next(next)) {
    place = next;
  }
  return place;
}

CachingAllocator::Index CachingAllocator::take_expandable(const Request& request) {
  Index found = find_expandable(request);
  if (found == kNone) return kNone;
  const auto size_of = [this](Index i) { return blocks_[static_cast<std::size_t>(i)].size; };
  if (!blocks_[static_cast<std::size_t>(found)].mapped && !map(found, std::min(size_of(found), request.size)))
    return kNone;
  while (size_of(found) < request.size) {  // a free block, then an unmapped one
    const Index next = blocks_[static_cast<std::size_t>(found)].next;
    if (!map(next, std::min(request.size - size_of(found), size_of(next)))) return kNone;
    found = next;
  }
  uncache(found);
  return found;
}

// The lowest place with room for the request, partly mapped already or not; a new range when there is none.
CachingAllocator::Index CachingAllocator::find_expandable(const Request& request) {
  Pool& pool = pools_[static_cast<std::size_t>(request.pool)];
  for (const Index index : pool.unmapped) {
    const Index before = blocks_[static_cast<std::size_t>(index)].previous;
    const Index first = before != kNone && !blocks_[static_cast<std::size_t>(before)].active ? before : index;
    if (has_room(first, request.size)) return first;
  }
  // PyTorch reserves 1 1/8 of the card's memory, which costs addresses only.
  const bool limited = capacity_ < kUnlimitedRangeBytes;
  const std::int64_t range = round_up(limited ? capacity_ + capacity_ / 8 : kUnlimitedRangeBytes, page_bytes(pool));
  if (range < request.size) return kNone;
  Block block;
  block.address = fresh_addresses(range);
  block.size = range;
  block.pool = request.pool;
  block.mapped = false;
  block.expandable = true;
  const Index made = new_block(block);
  add_unmapped(made);
  return made;
}

bool CachingAllocator::has_room(Index from, std::int64_t size) const {
  std::int64_t room = 0;
  for (Index i = from; room < size && i != kNone && !blocks_[static_cast<std::size_t>(i)].active;
       i = blocks_[static_cast<std::size_t>(i)].next) {
    room += blocks_[static_cast<std::size_t>(i)].size;
  }
  return room >= size;
}

// Maps whole pages at the start of an unmapped block, at least `size` bytes, and caches them together with free neighbours.
bool CachingAllocator::map(Index index, std::int64_t size) {
  const Block before = blocks_[static_cast<std::size_t>(index)];
  const std::int64_t mapped = round_up(size, page_bytes(pools_[static_cast<std::size_t>(before.pool)]));
  if (!charge(mapped)) return false;
  remove_unmapped(index);
  if (mapped < before.size) {
    Block rest = before;
    rest.address += mapped;
    rest.size -= mapped;
    rest.previous = index;
    const Index made = new_block(rest);
    if (rest.next != kNone) blocks_[static_cast<std::size_t>(rest.next)].previous = made;
    blocks_[static_cast<std::size_t>(index)].next = made;
    blocks_[static_cast<std::size_t>(index)].size = mapped;
    add_unmapped(made);
  }
  blocks_[static_cast<std::size_t>(index)].mapped = true;
  try_merge(index, blocks_[static_cast<std::size_t>(index)].previous);
  try_merge(index, blocks_[static_cast<std::size_t>(index)].next);
  cache(index);
  counters_.reserved.current += mapped;
  counters_.reserved.peak = std::max(counters_.reserved.peak, counters_.reserved.current);
  return true;
}

// Unmaps the whole pages inside a cached block; what is left before and after stays cached.
void CachingAllocator::unmap(Index index) {
  const Block block = blocks_[static_cast<std::size_t>(index)];
  const std::int64_t page = page_bytes(pools_[static_cast<std::size_t>(block.pool)]);
  Index head = index;
  while (blocks_[static_cast<std::size_t>(head)].previous != kNone)
    head = blocks_[static_cast<std::size_t>(head)].previous;
  const std::int64_t start = blocks_[static_cast<std::size_t>(head)].address;
  const std::int64_t begin = start + round_up(block.address - start, page);
  const std::int64_t end = start + (block.address + block.size - start) / page * page;
  if (begin >= end) return;
  uncache(index);
  Block part = block;
  if (begin > block.address) {
    part.size = begin - block.address;
    part.next = index;
    const Index made = new_block(part);
    if (part.previous != kNone) blocks_[static_cast<std::size_t>(part.previous)].next = made;
    blocks_[static_cast<std::size_t>(index)].previous = made;
    cache(made);
  }
  if (end < block.address + block.size) {
    part = block;
    part.address = end;
    part.size = block.address + block.size - end;
    part.previous = index;
    const Index made = new_block(part);
    if (part.next != kNone) blocks_[static_cast<std::size_t>(part.next)].previous = made;
    blocks_[static_cast<std::size_t>(index)].next = made;
    cache(made);
  }
  Block& unmapped = blocks_[static_cast<std::size_t>(index)];
  unmapped.address = begin;
  unmapped.size = end - begin;
  unmapped.mapped = false;
  discharge(end - begin);
  counters_.reserved.current -= end - begin;
  try_merge(index, blocks_[static_cast<std::size_t>(index)].previous);
  try_merge(index, blocks_[static_cast<std::size_t>(index)].next);
  add_unmapped(index);
}

// A range of which nothing is mapped any more is given up.
void CachingAllocator::drop_empty_range(Index index) {
  const Block& block = blocks_[static_cast<std::size_t>(index)];
  if (block.mapped || is_split(block)) return;
  remove_unmapped(index);
  recycle(index);
}

void CachingAllocator::add_unmapped(Index index) {
  const Block& block = blocks_[static_cast<std::size_t>(index)];
  auto& list = pools_[static_cast<std::size_t>(block.pool)].unmapped;
  const auto address = [this](Index i) { return blocks_[static_cast<std::size_t>(i)].address; };
  list.insert(std::ranges::lower_bound(list, block.address, {}, address), index);
}

void CachingAllocator::remove_unmapped(Index index) {
  auto& list = pools_[static_cast<std::size_t>(blocks_[static_cast<std::size_t>(index)].pool)].unmapped;
  list.erase(std::ranges::find(list, index));
}

}  // namespace membill
