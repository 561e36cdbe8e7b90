// A model of PyTorch's CUDA caching allocator: what torch.cuda.memory_allocated and memory_reserved would say, and
// whether a request would raise torch.OutOfMemoryError.
//
// Source: PyTorch c10/cuda/CUDACachingAllocator.cpp (class DeviceCachingAllocator); compared operation by operation with
// PyTorch 2.15 (tests/unit/allocator_test.cpp, tests/data/allocator). Of equal cached blocks that release takes the one in
// the older segment, so the addresses that a driver gives out do not matter; releases that took the lower address agree as
// far as cudaMalloc answers with rising addresses. Not modelled: private pools of CUDA graphs and MemPool, memory
// callbacks, inter-process handles, the cudaMallocAsync backend.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "trace/allocator_settings.h"
#include "trace/free_blocks.h"

namespace membill {

// Names one allocated block. Stale once the block is released; a stale handle is recognised.
struct BlockHandle {
  std::int32_t index = -1;
  std::uint32_t serial = 0;
};

// A count now, and the highest since the start or the last `reset_peaks`.
struct Gauge {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  bool operator==(const Gauge&) const = default;
};

// The counters of torch.cuda.memory_stats(), by its names.
struct AllocatorCounters {
  Gauge requested;                  // requested_bytes: what callers asked for, before rounding
  Gauge allocated;                  // allocated_bytes: whole blocks in use, as memory_allocated() counts
  Gauge active;                     // active_bytes: allocated, or retired and not yet reusable
  Gauge reserved;                   // reserved_bytes: segments and mapped pages, as memory_reserved() counts
  Gauge segments;                   // segment: cudaMalloc'ed segments; expandable ones do not count
  std::int64_t inactive_split = 0;  // inactive_split_bytes: cached blocks that share a segment with others
  std::int64_t retries = 0;         // num_alloc_retries: requests that made the allocator give up its whole cache
  std::int64_t out_of_memory = 0;   // num_ooms: requests that failed all the same
  bool operator==(const AllocatorCounters&) const = default;
};

// One block as `blocks()` lists it.
struct BlockView {
  std::int64_t address;  // in bytes; a later segment lies higher and no address is used twice
  std::int64_t bytes;
  int stream;
  bool small_pool;
  bool active;  // allocated or retired
  bool mapped;  // backed by memory: false only for the unused rest of an expandable segment
  bool operator==(const BlockView&) const = default;
};

// What a request for `bytes` bytes asks of the allocator. Of no bytes: nothing.
struct SizedRequest {
  std::int64_t bytes = 0;    // as the caller asks
  std::int64_t block = 0;    // rounded_request
  std::int64_t segment = 0;  // segment_bytes_for that block
};

// One card's allocator in one process. Copying it copies the whole state.
class CachingAllocator {
 public:
  // `capacity`: bytes that segments may take of the card (what the context and others use already subtracted), none for
  // unlimited. It is also the total of which `per_process_memory_fraction` is a part.
  explicit CachingAllocator(const AllocatorSettings& settings = {},
                            std::optional<std::int64_t> capacity = std::nullopt);

  // A block for `bytes` bytes on `stream`, or nothing: out of memory after the real protocol (oversize cached blocks are
  // freed and the request retried, then the whole cache is freed and it is retried). A failed request may have emptied
  // the cache. REQUIRES: 0 < bytes <= 2^60. (PyTorch does not come here for empty tensors.)
  [[nodiscard]] std::optional<BlockHandle> allocate(std::int64_t bytes, int stream = 0) {
    return allocate(sized(bytes), stream);
  }
  // The same for a request sized once and made often.
  [[nodiscard]] std::optional<BlockHandle> allocate(const SizedRequest& sized, int stream = 0);

  // REQUIRES: 0 <= bytes <= 2^60.
  [[nodiscard]] SizedRequest sized(std::int64_t bytes) const;

  // allocate() and at once release(): only peaks move, unless new memory must be taken. False when memory runs out.
  [[nodiscard]] bool touch(std::int64_t bytes, int stream = 0) { return touch(sized(bytes), stream); }
  [[nodiscard]] bool touch(const SizedRequest& sized, int stream = 0);

  // Gives the block back to its stream's cache, to be reused at once. Nothing happens for a stale handle.
  void release(BlockHandle handle);

  // The owner let go of the block while another stream still uses it (record_stream): it leaves `allocated`, stays
  // `active`, and is reused only after `release`, which the caller does when that stream has passed, or when a retry or
  // `empty_cache` waits for all streams.
  void retire(BlockHandle handle);

  // torch.cuda.empty_cache().
  void empty_cache();

  // torch.cuda.reset_peak_memory_stats().
  void reset_peaks();

  [[nodiscard]] const AllocatorCounters& counters() const { return counters_; }
  // The size of the largest cached block of any pool and stream; 0 when nothing is cached.
  [[nodiscard]] std::int64_t largest_free_block() const;
  // Size of the block: at least what was asked. 0 for a stale handle.
  [[nodiscard]] std::int64_t block_bytes(BlockHandle handle) const;
  // A digest of all that decides how later requests are served: two equal ones, and the same requests serve alike. 0: not to be said in
  // a digest, because blocks are retired or age.
  [[nodiscard]] std::uint64_t state_digest() const;
  // Every block, by address. For tests and pictures; sorts, so it is not cheap.
  [[nodiscard]] std::vector<BlockView> blocks() const;

 private:
  using Index = std::int32_t;
  static constexpr Index kNone = -1;

  struct Block {
    std::int64_t address = 0;
    std::int64_t size = 0;
    std::int64_t requested = 0;
    std::int64_t cached_at = 0;  // the pool's number of lookups when the block was cached
    Index previous = kNone;      // neighbours in the segment
    Index next = kNone;
    std::uint32_t serial = 0;
    std::int32_t pool = 0;
    bool allocated = false;
    bool active = false;
    bool mapped = true;
    bool expandable = false;
    bool exists = false;
  };

  struct Pool {
    int stream = 0;
    bool small = false;
    FreeBlocks cached;
    std::vector<Index> unmapped;  // by address
  };

  struct Request {
    std::int64_t size;
    std::int64_t segment;
    std::int32_t pool;
  };

  // allocator.cpp: the way of a request that needs no retry, and the way back.
  [[nodiscard]] Request request_for(const SizedRequest& sized, int stream);
  std::int32_t pool_for(int stream, bool small) {
    std::size_t i = 0;
    while (i < streams_.size() && streams_[i] != stream) ++i;
    if (i == streams_.size()) add_stream(stream);
    return static_cast<std::int32_t>(2 * i + (small ? 0 : 1));
  }
  void add_stream(int stream);
  [[nodiscard]] FreeBlocks::Position best_fit(const Pool& pool, const Request& request) const;
  Index take_new(const Request& request);
  BlockHandle hand_out_cached(FreeBlocks::Position place, const Request& request, std::int64_t bytes);
  BlockHandle hand_out_new(Index found, const Request& request, std::int64_t bytes);
  BlockHandle hand_out(Index found, Index given, bool was_split, std::int64_t bytes);
  [[nodiscard]] bool should_split(const Block& block, std::int64_t size) const;
  Index split_front(Index found, std::int64_t size);
  void free_block(Index index);
  [[nodiscard]] bool joins(Index one, Index other) const;
  std::int64_t absorb(Index into, Index other);
  void try_merge(Index into, Index other);
  [[nodiscard]] FreeBlocks::Entry entry_to_cache(Index index);
  void cache(Index index);
  void uncache(Index index);
  Index new_block(const Block& block);
  void recycle(Index index);
  [[nodiscard]] bool holds(BlockHandle handle) const;
  [[nodiscard]] bool is_split(const Block& block) const { return block.previous != kNone || block.next != kNone; }
  std::int64_t fresh_addresses(std::int64_t bytes);
  bool charge(std::int64_t bytes);
  void discharge(std::int64_t bytes);

  // allocator_reclaim.cpp: memory given back to the driver.
  bool release_oversize(const Request& request);
  void release_cache();
  void collect_retired();
  void collect_garbage();
  std::int64_t collect_older_than(double age, double& total_age, std::int64_t& freeable);
  void release_segment(Index index);
  void release_pool(std::int32_t pool);

  // allocator_expandable.cpp
  Index take_expandable(const Request& request);
  Index find_expandable(const Request& request);
  [[nodiscard]] bool has_room(Index from, std::int64_t size) const;
  bool map(Index index, std::int64_t size);
  void unmap(Index index);
  void drop_empty_range(Index index);
  void add_unmapped(Index index);
  void remove_unmapped(Index index);
  [[nodiscard]] FreeBlocks::Position skip_to_tighter(const Pool& pool, FreeBlocks::Position first) const;
  [[nodiscard]] std::int64_t page_bytes(const Pool& pool) const;

  AllocatorSettings settings_;
  std::int64_t capacity_;  // of the card
  std::int64_t allowed_;   // by the memory fraction
  std::int64_t max_split_;
  std::int64_t max_non_split_rounding_;
  bool collects_garbage_;
  std::int64_t next_address_ = 0;
  std::int64_t charged_ = 0;  // of the card
  std::vector<Block> blocks_;
  std::vector<Index> spare_;
  std::vector<int> streams_;  // in the order of their first requests
  std::vector<Pool> pools_;   // two a stream: small, large
  std::vector<BlockHandle> retired_;
  std::array<std::int64_t, 2> lookups_{};  // of all streams' small and large pools, counted when garbage is collected
  AllocatorCounters counters_;
};

}  // namespace membill
