// Every job of the oracle's grid: a trace with loops says the same as one in which every layer is written out.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "estimate/simulation.h"
#include "membill/estimate.h"
#include "support/catch.h"
#include "support/oracle_rows.h"
#include "support/places.h"
#include "trace/expand.h"
#include "trace/fold.h"

namespace membill {
namespace {

const std::vector<accuracy::OracleRow>& rows() {
  static const auto all = accuracy::read_oracle_rows(test::in_source("data/measurements/oracle.jsonl"));
  return all;
}

// What happens, in order: bytes of every allocation and release, moments as marks.
std::vector<std::int64_t> sequence(const Simulation& job, const std::vector<std::int64_t>& bytes) {
  std::vector<std::int64_t> list;
  for (const FlatEvent& event : expand(job.trace, bytes).events) {
    if (event.kind == EventKind::moment) list.push_back(-1);
    if (event.kind == EventKind::allocate) list.push_back(bytes[static_cast<std::size_t>(event.size)] * 2);
    if (event.kind == EventKind::release) list.push_back(bytes[static_cast<std::size_t>(event.size)] * 2 + 1);
  }
  return list;
}

// A release must name a tensor that is alive, an allocation one that is not.
bool is_consistent(const Simulation& job, const std::vector<std::int64_t>& bytes) {
  const FlatTrace flat = expand(job.trace, bytes);
  std::vector<int> alive(static_cast<std::size_t>(flat.tensors), -1);
  for (const FlatEvent& event : flat.events) {
    int& state = alive[static_cast<std::size_t>(event.number)];
    if (event.kind == EventKind::allocate) {
      if (state >= 0) return false;
      state = event.size;
    }
    if (event.kind == EventKind::release) {
      if (state < 0 || bytes[static_cast<std::size_t>(state)] != bytes[static_cast<std::size_t>(event.size)])
        return false;
      state = -1;
    }
  }
  return true;
}

std::int64_t running_peak(const Simulation& job, const std::vector<std::int64_t>& bytes) {
  const FlatTrace flat = expand(job.trace, bytes);
  std::int64_t sum = 0, highest = 0;
  for (std::size_t i = 0; i < flat.events.size(); ++i) {
    const FlatEvent& event = flat.events[i];
    if (event.kind == EventKind::allocate) sum += bytes[static_cast<std::size_t>(event.size)];
    if (event.kind == EventKind::release) sum -= bytes[static_cast<std::size_t>(event.size)];
    if (i >= flat.billed_from) highest = std::max(highest, sum);
  }
  return highest;
}

}  // namespace

TEST_CASE("a folded trace equals the layers written out") {
  for (const accuracy::OracleRow& row : rows()) {
    INFO(row.id);
    const Simulation folded = simulate(row.model, row.plan, {}), whole = simulate(row.model, row.plan, {}, true);
    const auto folded_bytes = folded.trace.evaluate(folded.symbols), whole_bytes = whole.trace.evaluate(whole.symbols);
    REQUIRE(is_consistent(folded, folded_bytes));
    REQUIRE(sequence(folded, folded_bytes) == sequence(whole, whole_bytes));
    const PeakFold a = fold_peak(folded.trace, folded_bytes), b = fold_peak(whole.trace, whole_bytes);
    CHECK(a.highest == b.highest);
    CHECK(a.highest == running_peak(folded, folded_bytes));
    REQUIRE(a.moments.size() == b.moments.size());
    for (std::size_t i = 0; i < a.moments.size(); ++i) {
      CHECK(a.moments[i].highest == b.moments[i].highest);
      CHECK(a.moments[i].end == b.moments[i].end);
    }
  }
}

TEST_CASE("the items of every report sum to what is requested at the peak") {
  for (const accuracy::OracleRow& row : rows()) {
    INFO(row.id);
    EstimateOptions options;
    options.replay = false;
    const Report report = estimate(row.model, row.plan, {}, options);
    std::int64_t sum = 0;
    for (const LineItem& item : report.items)
      if (item.where == Place::device) sum += item.at_peak.value_or(0);
    REQUIRE(report.totals.requested.likely.has_value());
    CHECK(sum == *report.totals.requested.likely);
    for (const LineItem& item : report.items) CHECK(item.at_peak.value_or(0) <= item.bytes.value_or(INT64_MAX));
  }
}

}  // namespace membill
