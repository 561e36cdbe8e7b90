// Every job of the oracle's grid: a trace with loops says the same as one in which every layer is written out.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "estimate/simulation.h"
#include "membill/estimate.h"
#include "support/catch.h"
#include "support/oracle_rows.h"
#include "support/places.h"
#include "trace/allocator_driver.h"
#include "trace/expand.h"
#include "trace/fold.h"
#include "trace/replay.h"

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

// The trace with every tensor of other items empty.
Trace only(const Trace& trace, std::size_t item, SizeId empty) {
  Trace alone = trace;
  for (Event& event : alone.events)
    if ((event.kind == EventKind::allocate || event.kind == EventKind::release) &&
        event.item != static_cast<ItemId>(item))
      event.size = empty;
  return alone;
}

// The allocator after all events, none left out; its peak of allocated bytes is that of the billed step.
AllocatorCounters walk_all(const Simulation& job, const std::vector<std::int64_t>& bytes) {
  const FlatTrace flat = expand(job.trace, bytes);
  AllocatorDriver driver({}, std::nullopt, static_cast<std::size_t>(flat.tensors));
  std::int64_t reserved = 0;
  for (std::size_t i = 0; i < flat.events.size(); ++i) {
    const FlatEvent& event = flat.events[i];
    reserved = std::max(reserved, driver.counters().reserved.peak);
    if (i == flat.billed_from) driver.allocator().reset_peaks();
    const auto number = static_cast<std::size_t>(event.number);
    if (event.kind == EventKind::empty_cache) driver.allocator().empty_cache();
    if (event.kind == EventKind::release) driver.release(number);
    if (event.kind == EventKind::allocate &&
        !driver.allocate(number, bytes[static_cast<std::size_t>(event.size)], event.stream))
      FAIL("an unlimited card is full");
  }
  AllocatorCounters counters = driver.counters();
  counters.reserved.peak = std::max(reserved, counters.reserved.peak);
  return counters;
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

TEST_CASE("each item's fold is that of the trace in which all else is empty") {
  for (std::size_t i = 0; i < rows().size(); i += 23) {
    const accuracy::OracleRow& row = rows()[i];
    INFO(row.id);
    const Simulation job = simulate(row.model, row.plan, {});
    auto bytes = job.trace.evaluate(job.symbols);
    const std::vector<PeakFold> items = fold_items(job.trace, bytes);
    bytes.push_back(0);
    REQUIRE(items.size() == job.trace.items.size());
    for (std::size_t item = 0; item < items.size(); ++item) {
      INFO(job.trace.items[item]);
      const PeakFold alone = fold_peak(only(job.trace, item, static_cast<SizeId>(bytes.size() - 1)), bytes);
      CHECK(items[item].highest == alone.highest);
      REQUIRE(items[item].moments.size() == alone.moments.size());
      for (std::size_t m = 0; m < alone.moments.size(); ++m) {
        CHECK(items[item].moments[m].highest == alone.moments[m].highest);
        CHECK(items[item].moments[m].end == alone.moments[m].end);
      }
    }
  }
}

TEST_CASE("turns that a replay leaves out change nothing") {
  for (std::size_t i = 0; i < rows().size(); i += 5) {
    accuracy::OracleRow row = rows()[i];
    row.plan.accumulate = 7;
    INFO(row.id);
    const Simulation job = simulate(row.model, row.plan, {});
    const auto bytes = job.trace.evaluate(job.symbols);
    const ReplayResult replayed = replay(job.trace, bytes, {}, std::nullopt);
    const AllocatorCounters all = walk_all(job, bytes);
    CHECK(replayed.reserved_ever() == all.reserved.peak);
    CHECK(replayed.allocated == all.allocated.peak);
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
