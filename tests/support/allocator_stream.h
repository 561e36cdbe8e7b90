// Reads the recorded event streams of tests/data/allocator (its record.py and drive.py say how they were made).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trace/allocator_replay.h"

namespace membill::test {

// What the real allocator counted after event `after` - 1, by the order of a "=" line.
struct Checkpoint {
  std::size_t after;
  std::vector<std::int64_t>
      counters;  // allocated, reserved, requested, inactive split, segments, retries, out of memory
};

struct AllocatorStream {
  std::string name;                      // the file's, without folder and ending
  std::string settings;                  // PYTORCH_ALLOC_CONF of the run
  std::optional<std::int64_t> capacity;  // of the card, when the run was limited
  std::optional<double> fraction;        // set_per_process_memory_fraction
  std::vector<AllocatorEvent> events;
  std::vector<bool> failed;  // for each event: the real allocator ran out of memory
  std::vector<Checkpoint> checkpoints;
  std::map<std::string, std::int64_t> counters;  // of the whole run
};

// Every file of tests/data/allocator whose name starts with `prefix`, by name.
[[nodiscard]] std::vector<AllocatorStream> allocator_streams(std::string_view prefix);

// The stream's settings; the test fails when they cannot be read.
[[nodiscard]] AllocatorSettings settings_of(const AllocatorStream& stream);

}  // namespace membill::test
