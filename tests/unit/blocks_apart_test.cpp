#include "trace/blocks_apart.h"

#include "support/catch.h"

namespace membill {
namespace {

constexpr std::int64_t kMiB = kAllocatorMiB;

// The sizes that a job asks for; each event's slot is its place in the trace.
const std::vector<std::int64_t> kBytes{64 * kMiB, 63 * kMiB, 4 * kMiB, 1000, 0, 64 * kMiB - 100};

class Job {
 public:
  std::int32_t allocate(SizeId size) {
    const auto slot = static_cast<std::int32_t>(trace_.slot_labels.size());
    trace_.slot_labels.push_back("tensor");
    trace_.events.push_back({.kind = EventKind::allocate, .slot = slot, .size = size});
    return slot;
  }
  void release(std::int32_t slot, SizeId size) {
    trace_.events.push_back({.kind = EventKind::release, .slot = slot, .size = size});
  }
  // `body` is given `turns` times, as a loop or written out.
  template <typename Body>
  void repeat(std::int64_t turns, bool loop, const Body& body) {
    const std::size_t start = trace_.events.size();
    if (loop) {
      trace_.events.push_back({.kind = EventKind::loop, .size = static_cast<SizeId>(bytes_.size())});
      bytes_.push_back(turns);
    }
    for (std::int64_t turn = 0; turn < (loop ? 1 : turns); ++turn) body();
    if (!loop) return;
    trace_.events[start].slot = static_cast<std::int32_t>(trace_.events.size());
    trace_.events.push_back({.kind = EventKind::end_loop});
  }
  void empty_cache() { trace_.events.push_back({.kind = EventKind::empty_cache}); }
  [[nodiscard]] std::int64_t apart() const { return reserved_apart(trace_, bytes_, {}); }

 private:
  Trace trace_;
  std::vector<std::int64_t> bytes_ = kBytes;  // and the turns of loops
};

}  // namespace

TEST_CASE("blocks that never serve another size", "[allocator]") {
  Job job;
  CHECK(job.apart() == 0);
  job.release(job.allocate(0), 0);
  job.allocate(1);  // a cache could have served it from the block before
  CHECK(job.apart() == (64 + 64 + 64) * kMiB);
  const std::int32_t rounded = job.allocate(5);  // to the first size
  const std::int32_t large = job.allocate(0);
  CHECK(job.apart() == (2 * 64 + 64 + 64) * kMiB);
  for (const SizeId size : {2, 3, 4}) job.allocate(size);
  CHECK(job.apart() == (2 * 64 + 64 + 20 + 2 + 64) * kMiB);
  job.release(large, 0);
  job.release(rounded, 5);
  job.empty_cache();
  CHECK(job.apart() == (64 + 20 + 2 + 63) * kMiB);
}

TEST_CASE("blocks of a loop are those of its turns", "[allocator]") {
  const std::int64_t turns = GENERATE(1, 2, 3, 7);
  const auto job = [&](bool loop) {
    Job made;
    for (int i = 0; i < 9; ++i) (void)made.allocate(2);
    made.repeat(turns, loop, [&] {
      made.release(made.allocate(0), 0);
      (void)made.allocate(1);  // stays
      made.release(0, 2);      // one from before
      made.repeat(2, loop, [&] { (void)made.allocate(3); });
    });
    made.empty_cache();
    made.repeat(turns, loop, [&] { made.release(0, 1); });
    (void)made.allocate(5);
    return made.apart();
  };
  CHECK(job(true) == job(false));
}

}  // namespace membill
