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
  void empty_cache() { trace_.events.push_back({.kind = EventKind::empty_cache}); }
  [[nodiscard]] std::int64_t apart() const { return reserved_apart(trace_, kBytes, {}); }

 private:
  Trace trace_;
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

}  // namespace membill
