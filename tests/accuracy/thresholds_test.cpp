// The smallest card on which a job survives, retries of the allocator included: found by bisection with the real allocator
// (data/measurements/thresholds.jsonl: it survives on `survives` bytes and dies on `dies`), and as membill finds it.
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "estimate/simulation.h"
#include "io/json_reader.h"
#include "support/catch.h"
#include "support/oracle_rows.h"
#include "support/places.h"
#include "support/readme_row.h"
#include "support/scoreboard.h"
#include "trace/replay.h"

namespace membill::accuracy {
namespace {

const std::string kPath = test::in_source("data/measurements/thresholds.jsonl");

std::map<std::string, std::int64_t> smallest_measured() {
  std::map<std::string, std::int64_t> smallest;
  std::ifstream file(kPath);
  for (std::string line; std::getline(file, line);) {
    const Value row = io::parse_json(line, kPath);
    smallest[row.find("id")->as_string()] = row.find("survives")->as_int();
  }
  return smallest;
}

}  // namespace

TEST_CASE("the smallest card of a job") {
  const std::map<std::string, std::int64_t> measured = smallest_measured();
  Scoreboard board("smallest card on which a job survives, by method");
  for (const OracleRow& row : read_oracle_rows(kPath)) {
    const Simulation job = simulate(row.model, row.plan, {});
    if (!job.activations_known) continue;
    const std::vector<std::int64_t> bytes = job.trace.evaluate(job.symbols);
    const std::int64_t predicted = smallest_capacity(job.trace, bytes, {});
    const double error = relative_error(predicted, measured.at(row.id));
    board.add(row.method, "smallest card", error);
    if (error > 0.01 || error < -0.01) fmt::print("{:<52} smallest card {:>9.4f} %\n", row.id, 100 * error);
    INFO(row.id);
    CHECK(error > -0.02);  // never more than 2 % too small
  }
  fmt::print("{}", board.table());
  const Errors all = board.all("smallest card");
  CHECK(all.values.size() > 20);
  CHECK(all.median() < 0.01);
  CHECK(all.percentile(0.95) < 0.04);
  const std::string worse = board.worse_than_recorded(test::in_source("tests/accuracy/thresholds.recorded.txt"));
  INFO(worse);
  CHECK(worse.empty());
  CHECK(stale_readme_row("smallest card that survives", all).empty());
}

}  // namespace membill::accuracy
