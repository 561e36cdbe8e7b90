// membill against the oracle's rows of one rank of many, by engine and phase. Fails when a figure is worse than recorded, or when a row
// misses the targets: requested peak 2 % at worst, 0.3 % at the median; allocated 0.5 % at the median. Blocks that another stream's
// pool cannot reuse whole are not told apart by the replay: on models of 23 million parameters allocated peaks are up to 5 % off.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "membill/estimate.h"
#include "support/catch.h"
#include "support/oracle_rows.h"
#include "support/places.h"
#include "support/readme_row.h"
#include "support/scoreboard.h"

namespace membill::accuracy {
namespace {

std::string engine_of(const OracleRow& row) {
  switch (row.plan.engine) {
    case Engine::ddp: return "ddp";
    case Engine::deepspeed: return "zero-" + std::to_string(row.plan.sharding.zero);
    case Engine::fsdp: return "fsdp1";
    case Engine::fsdp2: return "fsdp2";
    default: return "other";
  }
}

// requested_bytes counts a freed block until the streams that used it have passed, allocated_bytes does not (torch 2.15
// c10/cuda/CUDACachingAllocator.cpp free, free_block). The phantom card's streams pass at the allocator's next call only. Where a
// phase requested more than it had allocated, such blocks are all of the difference, and the allocated bytes are what lived.
bool counts_freed_blocks(const OracleRow& row, const std::string& key) {
  const auto allocated = row.allocated.find(key);
  return allocated != row.allocated.end() && row.requested.at(key) > allocated->second;
}

// Accelerate's backward ends in DeepSpeed's step (accelerate 1.15 utils/deepspeed.py DeepSpeedEngineWrapper): what the Trainer's
// callbacks call its clip and its step is empty, and the step's highest moment is measured as backward's.
bool steps_in_backward(const OracleRow& row) {
  return row.plan.engine == Engine::deepspeed && row.plan.loop == Loop::trainer;
}

std::int64_t highest_from_backward(const Predicted& predicted) {
  std::int64_t highest = 0;
  for (const char* key : {"peak_backward", "peak_clip", "peak_step"})
    if (const auto found = predicted.requested.find(key); found != predicted.requested.end())
      highest = std::max(highest, found->second);
  return highest;
}

void add_phase(Scoreboard& board, const OracleRow& row, const Predicted& predicted, const std::string& key) {
  if (counts_freed_blocks(row, key) && predicted.allocated.count(key) != 0)
    return board.add("waiting, " + engine_of(row) + ", allocated", key,
                     relative_error(predicted.allocated.at(key), row.allocated.at(key)));
  if (steps_in_backward(row)) {
    if (key == "peak_clip" || key == "peak_step") return;
    if (key == "peak_backward")
      return board.add(engine_of(row) + " " + row.method, key,
                       relative_error(highest_from_backward(predicted), row.requested.at(key)));
  }
  board.add(engine_of(row) + " " + row.method, key, relative_error(predicted.requested.at(key), row.requested.at(key)));
}

void check(const Errors& errors, double median, double worst) {
  CHECK(errors.median() < median);
  CHECK(errors.worst() < worst);
}

}  // namespace

TEST_CASE("ranks of sharded jobs are not further off than recorded") {
  Scoreboard board(
      "oracle rows of sharded jobs: requested bytes by engine, method and phase; allocated peaks by engine");
  Errors requested_peaks, allocated_peaks;
  std::size_t refused = 0;
  for (const OracleRow& row : read_oracle_rows(test::in_source("data/measurements/oracle-sharded.jsonl"))) {
    if (!validate(row.model, row.plan, row.hardware).empty()) {
      fmt::print("{}: {}\n", row.id, validate(row.model, row.plan, row.hardware).front().message);
      ++refused;
      continue;
    }
    const Predicted predicted = predict(row, true);
    for (const auto& [key, measured] : row.requested)
      if (predicted.requested.count(key) != 0 && (key.find("peak") == 0 || key == "wrapped" || key == "after_zero"))
        add_phase(board, row, predicted, key);
    if (row.plan.sharding.offload != "none")
      board.add("host memory, " + engine_of(row), "in all", relative_error(predicted.host, row.host));
    if (row.nvme > 0) board.add("files on NVMe, " + engine_of(row), "in all", relative_error(predicted.nvme, row.nvme));
    const double allocated = relative_error(predicted.allocated.at("peak"), row.allocated.at("peak"));
    board.add("allocated, " + engine_of(row), "peak", allocated);
    requested_peaks.values.push_back(relative_error(predicted.requested.at("peak"), row.requested.at("peak")));
    allocated_peaks.values.push_back(allocated);
    if (std::fabs(allocated) > 0.02) fmt::print("{:<70} allocated peak {:>8.4f} %\n", row.id, 100 * allocated);
  }
  CHECK(refused == 1);  // a flash kernel in fp32
  check(requested_peaks, 0.003, 0.02);
  check(allocated_peaks, 0.005, 0.05);
  const std::string worse = board.worse_than_recorded(test::in_source("tests/accuracy/sharded.recorded.txt"));
  INFO(worse);
  CHECK(worse.empty());
  CHECK(stale_readme_row("requested peak of a rank, DDP, ZeRO and FSDP", requested_peaks).empty());
  CHECK(stale_readme_row("`max_memory_allocated` of a rank, DDP, ZeRO and FSDP", allocated_peaks).empty());
}

}  // namespace membill::accuracy
