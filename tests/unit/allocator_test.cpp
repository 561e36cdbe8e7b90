// The allocator's rules in small, and recorded streams of the real one (PyTorch 2.15).
#include "trace/allocator.h"

#include <algorithm>
#include <random>
#include <vector>

#include "support/allocator_stream.h"
#include "support/catch.h"
#include "trace/allocator_replay.h"
#include "trace/free_blocks.h"

namespace {

using membill::AllocatorCounters;
using membill::AllocatorEvent;
using membill::AllocatorEventKind;
using membill::AllocatorSettings;
using membill::BlockHandle;
using membill::BlockView;
using membill::CachingAllocator;
using membill::kAllocatorMiB;

AllocatorSettings settings(std::string_view text) {
  const auto read = membill::read_allocator_settings(text);
  REQUIRE(read.problems.empty());
  return read.settings;
}

BlockHandle take(CachingAllocator& allocator, std::int64_t bytes, int stream = 0) {
  const auto block = allocator.allocate(bytes, stream);
  REQUIRE(block);
  return *block;
}

}  // namespace

TEST_CASE("allocator - blocks are multiples of 512 bytes") {
  CachingAllocator allocator;
  CHECK(allocator.block_bytes(take(allocator, 1)) == 512);
  CHECK(allocator.block_bytes(take(allocator, 512)) == 512);
  CHECK(allocator.block_bytes(take(allocator, 513)) == 1024);
  CHECK(allocator.counters().requested.current == 1026);
  CHECK(allocator.counters().allocated.current == 2048);
  CHECK(allocator.counters().reserved.current == 2 * kAllocatorMiB);
  CHECK(allocator.largest_free_block() == 2 * kAllocatorMiB - 2048);
}

TEST_CASE("allocator - segment sizes by request") {
  const auto [bytes, segment] = GENERATE(table<std::int64_t, std::int64_t>({
      {1, 2 * kAllocatorMiB},
      {kAllocatorMiB, 2 * kAllocatorMiB},
      {kAllocatorMiB + 1, 20 * kAllocatorMiB},
      {10 * kAllocatorMiB - 512, 20 * kAllocatorMiB},
      {10 * kAllocatorMiB, 10 * kAllocatorMiB},
      {10 * kAllocatorMiB + 1, 12 * kAllocatorMiB},
      {33 * kAllocatorMiB, 34 * kAllocatorMiB},
  }));
  CachingAllocator allocator;
  (void)take(allocator, bytes);
  CHECK(allocator.counters().reserved.current == segment);
  CHECK(allocator.counters().segments.current == 1);
}

TEST_CASE("allocator - the large pool keeps a rest of more than 1 MiB only") {
  CachingAllocator allocator;
  CHECK(allocator.block_bytes(take(allocator, 11 * kAllocatorMiB)) == 12 * kAllocatorMiB);
  const BlockHandle shared = take(allocator, 9 * kAllocatorMiB);
  CHECK(allocator.block_bytes(shared) == 9 * kAllocatorMiB);
  CHECK(allocator.block_bytes(take(allocator, 10 * kAllocatorMiB)) == 11 * kAllocatorMiB);
  CHECK(allocator.counters().reserved.current == 32 * kAllocatorMiB);
  CHECK(allocator.counters().inactive_split == 0);
}

TEST_CASE("allocator - neighbours merge when they are free") {
  CachingAllocator allocator;
  std::vector<BlockHandle> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(take(allocator, 5 * kAllocatorMiB));
  allocator.release(blocks[0]);
  allocator.release(blocks[2]);
  CHECK(allocator.largest_free_block() == 5 * kAllocatorMiB);
  allocator.release(blocks[1]);
  CHECK(allocator.largest_free_block() == 15 * kAllocatorMiB);
  CHECK(allocator.counters().inactive_split == 15 * kAllocatorMiB);
  allocator.release(blocks[3]);
  CHECK(allocator.largest_free_block() == 20 * kAllocatorMiB);
  CHECK(allocator.counters().inactive_split == 0);
  allocator.release(blocks[3]);  // stale
  CHECK(allocator.counters().allocated.current == 0);
}

TEST_CASE("allocator - the tightest cached block is taken and among equals the oldest segment") {
  CachingAllocator allocator;
  const BlockHandle large = take(allocator, 40 * kAllocatorMiB);
  const BlockHandle first = take(allocator, 12 * kAllocatorMiB);
  const BlockHandle second = take(allocator, 12 * kAllocatorMiB);
  for (const BlockHandle block : {second, large, first}) allocator.release(block);
  (void)take(allocator, 12 * kAllocatorMiB);
  const auto view = allocator.blocks();
  REQUIRE(view.size() == 3);
  CHECK(view[1].active);
  CHECK_FALSE(view[2].active);
}

TEST_CASE("allocator - pools and streams are apart") {
  CachingAllocator allocator;
  allocator.release(take(allocator, 20 * kAllocatorMiB));
  (void)take(allocator, kAllocatorMiB);
  CHECK(allocator.counters().reserved.current == 22 * kAllocatorMiB);
  (void)take(allocator, 20 * kAllocatorMiB, 7);
  CHECK(allocator.counters().reserved.current == 42 * kAllocatorMiB);
}

TEST_CASE("allocator - the cache is given up before memory runs out") {
  CachingAllocator allocator({}, 64 * kAllocatorMiB);
  allocator.release(take(allocator, 40 * kAllocatorMiB));
  const BlockHandle block = take(allocator, 60 * kAllocatorMiB);
  CHECK(allocator.counters().retries == 1);
  CHECK(allocator.counters().reserved.current == 60 * kAllocatorMiB);
  CHECK(allocator.counters().reserved.peak == 60 * kAllocatorMiB);
  CHECK_FALSE(allocator.allocate(5 * kAllocatorMiB));
  CHECK(allocator.counters().retries == 2);
  CHECK(allocator.counters().out_of_memory == 1);
  allocator.release(block);
  CHECK(allocator.allocate(64 * kAllocatorMiB));
}

TEST_CASE("allocator - a segment with one live block stays") {
  CachingAllocator allocator({}, 40 * kAllocatorMiB);
  const BlockHandle kept = take(allocator, 2 * kAllocatorMiB);
  allocator.release(take(allocator, 18 * kAllocatorMiB));
  CHECK_FALSE(allocator.allocate(21 * kAllocatorMiB));
  allocator.empty_cache();
  CHECK(allocator.counters().reserved.current == 20 * kAllocatorMiB);
  allocator.release(kept);
  allocator.empty_cache();
  CHECK(allocator.counters().reserved.current == 0);
  CHECK(allocator.blocks().empty());
}

TEST_CASE("allocator - a retired block is not reused until it is released or waited for") {
  CachingAllocator allocator;
  const BlockHandle block = take(allocator, 12 * kAllocatorMiB);
  allocator.retire(block);
  CHECK(allocator.counters().allocated.current == 0);
  CHECK(allocator.counters().active.current == 12 * kAllocatorMiB);
  const BlockHandle other = take(allocator, 12 * kAllocatorMiB);
  CHECK(allocator.counters().reserved.current == 24 * kAllocatorMiB);
  SECTION("released") {
    allocator.release(block);
    (void)take(allocator, 12 * kAllocatorMiB);
    CHECK(allocator.counters().reserved.current == 24 * kAllocatorMiB);
  }
  SECTION("waited for") {
    allocator.empty_cache();
    CHECK(allocator.counters().reserved.current == 12 * kAllocatorMiB);
    allocator.release(block);
    CHECK(allocator.block_bytes(other) == 12 * kAllocatorMiB);
  }
}

TEST_CASE("allocator - expandable segments grow by pages and merge") {
  CachingAllocator allocator(settings("expandable_segments:True"), 200 * kAllocatorMiB);
  const BlockHandle a = take(allocator, 30 * kAllocatorMiB);
  CHECK(allocator.counters().reserved.current == 40 * kAllocatorMiB);
  CHECK(allocator.counters().segments.current == 0);
  const BlockHandle b = take(allocator, 30 * kAllocatorMiB);
  CHECK(allocator.counters().reserved.current == 60 * kAllocatorMiB);
  (void)take(allocator, 700);
  CHECK(allocator.counters().reserved.current == 62 * kAllocatorMiB);
  allocator.release(a);
  const BlockHandle c = take(allocator, 45 * kAllocatorMiB);
  CHECK(allocator.counters().reserved.current == 122 * kAllocatorMiB);
  allocator.empty_cache();
  CHECK(allocator.counters().reserved.current == 102 * kAllocatorMiB);  // of the first 30 MiB one whole page
  allocator.release(b);
  allocator.release(c);
  allocator.empty_cache();
  CHECK(allocator.counters().reserved.current == 2 * kAllocatorMiB);
}

TEST_CASE("allocator - oversize blocks are kept whole") {
  CachingAllocator allocator(settings("max_split_size_mb:32"), 200 * kAllocatorMiB);
  allocator.release(take(allocator, 60 * kAllocatorMiB));
  (void)take(allocator, 20 * kAllocatorMiB);  // not from the oversize block
  CHECK(allocator.counters().reserved.current == 80 * kAllocatorMiB);
  CHECK(allocator.block_bytes(take(allocator, 41 * kAllocatorMiB)) == 60 * kAllocatorMiB);
  allocator.release(take(allocator, 90 * kAllocatorMiB));
  (void)take(allocator, 70 * kAllocatorMiB);  // too small for 90 MiB, which is freed without a retry
  CHECK(allocator.counters().reserved.current == 150 * kAllocatorMiB);
  CHECK(allocator.counters().retries == 0);
}

TEST_CASE("allocator - requests are rounded up to power of two divisions") {
  const AllocatorSettings four = settings("roundup_power2_divisions:4");
  CHECK(membill::rounded_request(four, 1200) == 1536);
  CHECK(membill::rounded_request(four, 1300 * 1024) == 1536 * 1024);
  CHECK(membill::rounded_request(four, 5 * kAllocatorMiB) == 5 * kAllocatorMiB);
  CHECK(membill::rounded_request(four, 5 * kAllocatorMiB + 1) == 6 * kAllocatorMiB);
  const AllocatorSettings table = settings("roundup_power2_divisions:[4:4,8:2,32:8,>:16]");
  CHECK(table.roundup_power2_divisions[0] == 4);
  CHECK(table.roundup_power2_divisions[4] == 0);
  CHECK(table.roundup_power2_divisions[5] == 8);
  CHECK(table.roundup_power2_divisions[6] == 16);
}

TEST_CASE("allocator - random use keeps the books") {
  const std::string conf =
      GENERATE("", "expandable_segments:True", "max_split_size_mb:24", "roundup_power2_divisions:8");
  const auto capacity = GENERATE(std::optional<std::int64_t>{}, std::optional<std::int64_t>{600 * kAllocatorMiB});
  INFO(conf);
  CachingAllocator allocator(settings(conf), capacity);
  std::mt19937 random(7);
  std::vector<BlockHandle> live;
  const auto check = [&allocator] {
    const auto view = allocator.blocks();
    std::int64_t mapped = 0;
    std::int64_t active = 0;
    for (std::size_t i = 0; i < view.size(); ++i) {
      REQUIRE(view[i].bytes > 0);
      if (i + 1 < view.size()) REQUIRE(view[i].address + view[i].bytes <= view[i + 1].address);
      if (view[i].mapped) mapped += view[i].bytes;
      if (view[i].active) active += view[i].bytes;
    }
    const AllocatorCounters& counters = allocator.counters();
    REQUIRE(mapped == counters.reserved.current);
    REQUIRE(active == counters.active.current);
    REQUIRE(counters.allocated.current == counters.active.current);
    REQUIRE(counters.requested.current <= counters.allocated.current);
  };
  for (int step = 0; step < 3000; ++step) {
    if (random() % 100 == 0) allocator.empty_cache();
    if (live.empty() || (live.size() < 90 && random() % 100 < 55)) {
      const auto bytes =
          static_cast<std::int64_t>(1 + (random() % 4096) * (random() % 4096) * (random() % 3 == 0 ? 3 : 1));
      const auto block = allocator.allocate(bytes, static_cast<int>(random() % 2));
      if (block) live.push_back(*block);
    } else {
      std::swap(live[random() % live.size()], live.back());
      allocator.release(live.back());
      live.pop_back();
    }
    if (step % 25 == 0) check();
    if (capacity) REQUIRE(allocator.counters().reserved.current <= *capacity);
  }
  for (const BlockHandle block : live) allocator.release(block);
  check();
  allocator.empty_cache();
  CHECK(allocator.counters().reserved.current == 0);
  CHECK(allocator.counters().inactive_split == 0);
  CHECK(allocator.blocks().empty());
}

TEST_CASE("allocator - the sorted set agrees with a plain one") {
  using Entry = membill::FreeBlocks::Entry;
  const int sizes = GENERATE(50, 2);  // few blocks of each size, or runs of them
  const std::size_t most =
      GENERATE(std::size_t{700}, std::size_t{4});  // with few blocks a replacement mostly keeps its place
  CAPTURE(sizes, most);
  membill::FreeBlocks set;
  std::vector<std::pair<std::int64_t, std::int64_t>> plain;
  std::mt19937 random(3);
  for (int step = 0; step < 20000; ++step) {
    const std::pair<std::int64_t, std::int64_t> key(
        static_cast<std::int64_t>(random() % 50) * sizes / 50 * (50 / sizes), step * 7919 % 20011);
    const Entry entry{key.first, key.second, step};
    if (plain.size() < most) {
      set.insert(entry);
      plain.insert(std::ranges::lower_bound(plain, key), key);
    } else if (random() % 2 == 0) {
      const auto at = plain.begin() + static_cast<std::ptrdiff_t>(random() % plain.size());
      if (random() % 2 == 0)
        set.replace(at->first, at->second, entry);
      else if (const auto first = set.first_of(at->first); set.at(first).address == at->second)
        set.replace(first, entry);
      else
        continue;
      plain.erase(at);
      plain.insert(std::ranges::lower_bound(plain, key), key);
    } else {
      const auto at = plain.begin() + static_cast<std::ptrdiff_t>(random() % plain.size());
      set.erase(at->first, at->second);
      plain.erase(at);
    }
    const auto expected = std::ranges::lower_bound(plain, std::pair<std::int64_t, std::int64_t>(25, 0));
    const auto found = set.first_of(25);
    REQUIRE((found == set.end()) == (expected == plain.end()));
    if (found != set.end()) REQUIRE(set.at(found).address == expected->second);
  }
  std::size_t count = 0;
  for (auto p = set.begin(); p != set.end(); p = set.next(p), ++count) {
    REQUIRE(set.at(p).address == plain[count].second);
    if (count > 0) REQUIRE(set.at(set.previous(p)).address == plain[count - 1].second);
  }
  CHECK(count == plain.size());
}

TEST_CASE("allocator - a touch is an allocation and its release") {
  std::mt19937 random(5);
  for (const char* conf : {"", "garbage_collection_threshold:0.5", "expandable_segments:True"}) {
    INFO(conf);
    CachingAllocator allocator(settings(conf), 1024 * kAllocatorMiB);
    std::vector<BlockHandle> live;
    for (int step = 0; step < 3000; ++step) {
      const std::int64_t bytes = 1 + (random() % 3000) * (random() % 3000) * (random() % 3 + 1);
      CachingAllocator other = allocator;
      const auto block = other.allocate(bytes);
      if (block) other.release(*block);
      REQUIRE(allocator.touch(bytes) == block.has_value());
      REQUIRE(allocator.counters() == other.counters());
      if (step % 20 == 0) REQUIRE(allocator.blocks() == other.blocks());
      if (live.size() < 40 || random() % 2 == 0) {
        const auto kept = allocator.allocate(bytes);
        if (kept) live.push_back(*kept);
      } else {
        std::swap(live[random() % live.size()], live.back());
        allocator.release(live.back());
        live.pop_back();
      }
    }
  }
}

TEST_CASE("allocator - random requests give the real allocator's counters") {
  const auto streams = membill::test::allocator_streams("random-");
  CHECK(streams.size() >= 10);
  for (const auto& stream : streams) {
    CachingAllocator allocator(membill::test::settings_of(stream), stream.capacity);
    std::vector<BlockHandle> blocks(stream.events.size());
    auto checkpoint = stream.checkpoints.begin();
    for (std::size_t i = 0; i < stream.events.size(); ++i) {
      const AllocatorEvent& event = stream.events[i];
      INFO(stream.name << " event " << i);
      if (event.kind == AllocatorEventKind::allocate) {
        const auto block = allocator.allocate(event.bytes, event.stream);
        REQUIRE(block.has_value() == !stream.failed[i]);
        blocks[static_cast<std::size_t>(event.id)] = block.value_or(BlockHandle{});
      } else if (event.kind == AllocatorEventKind::release) {
        allocator.release(blocks[static_cast<std::size_t>(event.id)]);
      } else {
        allocator.empty_cache();
      }
      if (checkpoint == stream.checkpoints.end() || checkpoint->after != i + 1) continue;
      const AllocatorCounters& c = allocator.counters();
      REQUIRE(checkpoint->counters == std::vector<std::int64_t>{c.allocated.current, c.reserved.current,
                                                                c.requested.current, c.inactive_split,
                                                                c.segments.current, c.retries, c.out_of_memory});
      ++checkpoint;
    }
    CHECK(checkpoint == stream.checkpoints.end());
  }
}

TEST_CASE("allocator - training jobs give the real allocator's peaks") {
  const auto streams = membill::test::allocator_streams("job-");
  CHECK(streams.size() >= 6);
  for (const auto& stream : streams) {
    INFO(stream.name);
    const auto result = membill::replay_events(stream.events, membill::test::settings_of(stream));
    const AllocatorCounters& c = result.counters;
    CHECK(result.survives());
    CHECK(c.requested.peak == stream.counters.at("requested_bytes.all.peak"));
    CHECK(c.allocated.peak == stream.counters.at("allocated_bytes.all.peak"));
    CHECK(c.reserved.peak == stream.counters.at("reserved_bytes.all.peak"));
    CHECK(c.active.peak == stream.counters.at("active_bytes.all.peak"));
    CHECK(c.allocated.current == stream.counters.at("allocated_bytes.all.current"));
    CHECK(c.reserved.current == stream.counters.at("reserved_bytes.all.current"));
    CHECK(c.inactive_split == stream.counters.at("inactive_split_bytes.all.current"));
    CHECK(c.segments.peak == stream.counters.at("segment.all.peak"));
  }
}

TEST_CASE("allocator - training jobs survive on the real allocator's smallest card") {
  int compared = 0;
  for (const auto& stream : membill::test::allocator_streams("job-")) {
    if (!stream.counters.contains("survives")) continue;
    INFO(stream.name);
    const std::int64_t least = membill::smallest_surviving_capacity(stream.events, membill::test::settings_of(stream));
    CHECK(least > stream.counters.at("dies"));
    CHECK(least <= stream.counters.at("survives"));
    ++compared;
  }
  CHECK(compared >= 6);
}
