#include "trace/allocator_settings.h"

#include "support/catch.h"

using membill::read_allocator_settings;

namespace {

constexpr std::int64_t kMiB = membill::kAllocatorMiB;

}  // namespace

TEST_CASE("allocator settings - nothing set is the default") {
  const auto read = read_allocator_settings("");
  CHECK(read.problems.empty());
  CHECK(read.settings == membill::AllocatorSettings{});
}

TEST_CASE("allocator settings - all that change bytes") {
  const auto read = read_allocator_settings(
      " expandable_segments : True, "
      "max_split_size_mb:128,max_non_split_rounding_mb:40,garbage_collection_threshold:0.8,"
      "roundup_power2_divisions:[256:1,512:2,>:4],large_segment_size_mb:32,per_process_memory_fraction:0.9,backend:"
      "native,");
  CHECK(read.problems.empty());
  CHECK(read.ignored.empty());
  CHECK(read.settings.expandable_segments);
  CHECK(read.settings.max_split_size_bytes == 128 * kMiB);
  CHECK(read.settings.max_non_split_rounding_bytes == 40 * kMiB);
  CHECK(read.settings.garbage_collection_threshold == 0.8);
  CHECK(read.settings.large_segment_bytes == 32 * kMiB);
  CHECK(read.settings.per_process_memory_fraction == 0.9);
  const auto& table = read.settings.roundup_power2_divisions;
  CHECK(table[0] == 1);
  CHECK(table[8] == 1);
  CHECK(table[9] == 2);
  CHECK(table[10] == 4);
  CHECK(table[15] == 4);
}

TEST_CASE("allocator settings - options that change nothing on the device are named") {
  const auto read =
      read_allocator_settings("pinned_use_background_threads:True,expandable_segments_reserve_by_class:[a:0.5,b:40G]");
  CHECK(read.problems.empty());
  CHECK(read.ignored == std::vector<std::string>{"pinned_use_background_threads:True",
                                                 "expandable_segments_reserve_by_class:[a:0.5,b:40G]"});
}

TEST_CASE("allocator settings - the last of two counts") {
  CHECK_FALSE(
      read_allocator_settings("expandable_segments:True,expandable_segments:False").settings.expandable_segments);
}

TEST_CASE("allocator settings - what is wrong is said in one clause") {
  const auto [text, key, message] = GENERATE(table<std::string, std::string, std::string>({
      {"expandable_segments:true", "expandable_segments", "must be True or False"},
      {"expandable_segments", "expandable_segments", "has no value"},
      {"max_split_size_mb:19", "max_split_size_mb", "must be a whole number of MiB, at least 20"},
      {"max_split_size_mb:128MB", "max_split_size_mb", "must be a whole number of MiB, at least 20"},
      {"max_split_size_mb:-1", "max_split_size_mb", "must be a whole number of MiB, at least 20"},
      {"large_segment_size_mb:10", "large_segment_size_mb", "must be a whole number of MiB, at least 11"},
      {"large_segment_size_mb:64,max_split_size_mb:32", "max_split_size_mb", "must not be below large_segment_size_mb"},
      {"garbage_collection_threshold:1.0", "garbage_collection_threshold", "must be a number above 0 and below 1"},
      {"garbage_collection_threshold:nan", "garbage_collection_threshold", "must be a number above 0 and below 1"},
      {"per_process_memory_fraction:1.5", "per_process_memory_fraction", "must be a number from 0 to 1"},
      {"roundup_power2_divisions:3", "roundup_power2_divisions",
       "must be a power of two, or a table such as [256:1,512:2,>:4]"},
      {"roundup_power2_divisions:[256:1,512:2", "roundup_power2_divisions", "the table lacks its closing ]"},
      {"roundup_power2_divisions:[3:2]", "roundup_power2_divisions", "sizes must be powers of two in MiB, not \"3\""},
      {"roundup_power2_divisions:[4:3]", "roundup_power2_divisions",
       "divisions must be 0 or a power of two, not \"3\""},
      {"backend:cudaMallocAsync", "backend", "cudaMallocAsync is another allocator, which is not modelled"},
  }));
  const auto read = read_allocator_settings(text);
  REQUIRE(read.problems.size() == 1);
  CHECK(read.problems[0].key == key);
  CHECK(read.problems[0].message == message);
}

TEST_CASE("allocator settings - every wrong part is reported and the right ones count") {
  const auto read = read_allocator_settings("expandable_segment:True,max_split_size_mb:64,garbage:1");
  REQUIRE(read.problems.size() == 2);
  CHECK(read.problems[0].key == "expandable_segment");
  CHECK(read.problems[0].message == "is not an option of the allocator");
  CHECK(read.problems[0].hint == "did you mean expandable_segments?");
  CHECK(read.settings.max_split_size_bytes == 64 * kMiB);
}
