// membill against one rank of jobs whose sequences or layers are split over ranks, by the code that splits them. Rows of a plain loop hold
// the ids of whole sequences beside the rank's own, some tens of KB, which are in no bill.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "base/engine_keys.h"
#include "membill/estimate.h"
#include "support/catch.h"
#include "support/oracle_rows.h"
#include "support/places.h"
#include "support/readme_row.h"
#include "support/scoreboard.h"

namespace membill::accuracy {
namespace {

std::string code_of(const OracleRow& row) {
  if (row.plan.parallel.tp > 1) return "DeepSpeed's AutoTP";
  const std::string code = engine_word(row.plan, "sequence_code", "accelerate");
  if (code != "accelerate") return code;
  return row.plan.parallel.cp > 1 ? "torch's context_parallel" : "DeepSpeed's Ulysses";
}

}  // namespace

TEST_CASE("ranks that share sequences or layers are not further off than recorded") {
  constexpr double kWorstRequested = 0.001, kWorstAllocated = 0.02;
  constexpr std::size_t kLeastRows = 54;
  Scoreboard board(
      "oracle rows of split sequences and layers: requested bytes by code and phase; allocated peaks by code");
  Errors requested_peaks, allocated_peaks;
  std::size_t rows = 0;
  for (const OracleRow& row : read_oracle_rows(test::in_source("data/measurements/oracle-parallel.jsonl"))) {
    INFO(row.id);
    REQUIRE(validate(row.model, row.plan, row.hardware).empty());
    const Predicted predicted = predict(row, true);
    for (const char* key : {"peak_forward", "peak_backward", "peak_step", "peak"})
      board.add(code_of(row), key, relative_error(predicted.requested.at(key), row.requested.at(key)));
    const double requested = relative_error(predicted.requested.at("peak"), row.requested.at("peak"));
    const double allocated = relative_error(predicted.allocated.at("peak"), row.allocated.at("peak"));
    board.add(code_of(row), "allocated peak", allocated);
    fmt::print("{:<42} requested {:>8.4f} %, allocated {:>8.4f} %\n", row.id, 100 * requested, 100 * allocated);
    requested_peaks.values.push_back(requested);
    allocated_peaks.values.push_back(allocated);
    CHECK(std::fabs(requested) < kWorstRequested);
    CHECK(std::fabs(allocated) < kWorstAllocated);
    ++rows;
  }
  CHECK(rows >= kLeastRows);
  const std::string worse = board.worse_than_recorded(test::in_source("tests/accuracy/parallel.recorded.txt"));
  INFO(worse);
  CHECK(worse.empty());
  CHECK(stale_readme_row("requested peak of a rank, sequences spread over ranks, AutoTP", requested_peaks).empty());
  CHECK(stale_readme_row("`max_memory_allocated` of a rank, sequences spread over ranks, AutoTP", allocated_peaks)
            .empty());
}

}  // namespace membill::accuracy
