#include "trace/blocks_apart.h"

#include "support/catch.h"

namespace membill {
namespace {

constexpr std::int64_t kMiB = kAllocatorMiB;

}  // namespace

TEST_CASE("blocks that never serve another size", "[allocator]") {
  const std::vector<std::int64_t> bytes{64 * kMiB, 63 * kMiB, 4 * kMiB, 1000, 0, 64 * kMiB - 100};
  BlocksApart apart(bytes, {});
  CHECK(apart.bytes() == 0);
  CHECK(apart.largest() == 0);
  apart.allocate(0);
  apart.release(0);
  apart.allocate(1);  // a cache could have served it from the block before
  CHECK(apart.bytes() == (64 + 64) * kMiB);
  apart.allocate(5);  // rounds to the first size
  apart.allocate(0);
  CHECK(apart.bytes() == (2 * 64 + 64) * kMiB);
  apart.allocate(2);
  apart.allocate(3);
  apart.allocate(4);
  CHECK(apart.bytes() == (2 * 64 + 64 + 20 + 2) * kMiB);
  CHECK(apart.largest() == 64 * kMiB);
  apart.release(0);
  apart.release(5);
  apart.empty_cache();
  CHECK(apart.bytes() == (64 + 20 + 2) * kMiB);
  CHECK(apart.largest() == 63 * kMiB);
}

}  // namespace membill
