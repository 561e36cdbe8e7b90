// membill against TRL's own trainers: what the allocator counted, by release, stage and phase. Fails when a figure is worse than
// recorded.
#include <fmt/format.h>

#include "membill/estimate.h"
#include "support/catch.h"
#include "support/oracle_rows.h"
#include "support/readme_row.h"
#include "support/scoreboard.h"

namespace membill::accuracy {

TEST_CASE("TRL's trainers") {
  Scoreboard board("TRL's trainers: allocated bytes by release, stage and phase");
  Errors peaks;
  int refused = 0;
  for (const OracleRow& row : read_oracle_rows(MEMBILL_SOURCE_DIR "/data/measurements/oracle-trl.jsonl")) {
    if (!validate(row.model, row.plan, row.hardware).empty()) {
      ++refused;
      continue;
    }
    INFO(row.id);
    const Predicted predicted = predict(row, true);
    const std::string group = row.id.substr(0, row.id.find('-', row.id.find('-', 4) + 1));
    for (const auto& [key, measured] : row.allocated)
      if (predicted.allocated.count(key) != 0)
        board.add(group, key, relative_error(predicted.allocated.at(key), measured));
    peaks.values.push_back(relative_error(predicted.allocated.at("peak"), row.allocated.at("peak")));
    if (std::abs(peaks.values.back()) > 0.005)
      fmt::print("{:<80} peak {:>9.4f} %\n", row.id, 100 * peaks.values.back());
  }
  fmt::print("{}rows that are refused: {}\n", board.table(), refused);
  CHECK(peaks.values.size() > 40);
  CHECK(peaks.median() < 0.005);
  CHECK(peaks.worst() < 0.02);
  const std::string worse = board.worse_than_recorded(MEMBILL_SOURCE_DIR "/tests/accuracy/trl.recorded.txt");
  INFO(worse);
  CHECK(worse.empty());
  CHECK(stale_readme_row("`max_memory_allocated`, TRL's trainers", peaks).empty());
}

}  // namespace membill::accuracy
