#include "estimate/bill.h"

#include <algorithm>

#include "estimate/communicators.h"
#include "estimate/distinct_ranks.h"
#include "estimate/item_table.h"
#include "estimate/runtime_lines.h"
#include "trace/timeline.h"

namespace membill {
namespace {

LineItem new_line(std::string_view id) {
  const ItemRow& row = item_row(id);
  LineItem line;
  line.id = id;
  line.label = row.label;
  line.category = row.category;
  line.source = row.source;
  return line;
}

LineItem device_line(const Simulation& job, std::size_t item, const PeakFold& own, const std::vector<LiveItem>& live) {
  LineItem line = new_line(job.trace.items[item]);
  line.bytes = own.highest;
  line.low = line.high = own.highest;
  line.at_peak = 0;
  line.formula = "0";
  for (const MomentFold& moment : own.moments)
    if (moment.highest > 0)
      line.moments.emplace_back(job.trace.moments[static_cast<std::size_t>(moment.moment)], moment.highest);
  for (const LiveItem& part : live) {
    if (part.item != static_cast<ItemId>(item)) continue;
    line.at_peak = job.symbols.evaluate(part.bytes);
    line.formula = job.symbols.text(part.bytes);
  }
  return line;
}

constexpr std::size_t kTimelinePoints = 96;

// A line beside the caching allocator: a range, and no part of the requested total.
LineItem runtime_line(std::string_view id, const Range& range) {
  LineItem line = new_line(id);
  line.bytes = range.likely;
  line.low = range.low;
  line.high = range.high;
  line.at_peak = 0;
  line.formula = "outside of the allocator, not in the requested total";
  return line;
}

void add_lines(std::vector<LineItem>& items, Place where, const std::map<std::string, std::int64_t>& stored) {
  for (const auto& [id, bytes] : stored) {
    if (bytes == 0) continue;
    LineItem line = new_line(id);
    line.where = where;
    line.bytes = line.low = line.high = bytes;
    line.formula = "outside of the card's allocator, not in the requested total";
    items.push_back(std::move(line));
  }
}

// What is unknown is a line without bytes, never a zero.
void add_unknown_activations(std::vector<LineItem>& items) {
  for (const char* id : {"activations.block", "loss.logits"}) {
    LineItem line = new_line(id);
    line.formula = "unknown: no block program for this model type";
    items.push_back(std::move(line));
  }
}

void add_moments(Bill& bill, const Simulation& job) {
  bill.moments.push_back({"build", bill.rank, bill.peak.building, std::nullopt, bill.peak.built});
  for (const MomentFold& moment : bill.peak.moments)
    bill.moments.push_back({job.trace.moments[static_cast<std::size_t>(moment.moment)], bill.rank, moment.highest,
                            std::nullopt, moment.end});
  bill.peak_moment = job.trace.moments[static_cast<std::size_t>(bill.peak.moment)];
}

}  // namespace

Bill make_bill(const Simulation& job, const TrainingPlan& plan, const Hardware& hardware) {
  Bill bill;
  bill.rank = distinct_ranks(plan, hardware).front().name;
  bill.bytes = job.trace.evaluate(job.symbols);
  bill.peak = fold_peak(job.trace, bill.bytes);
  const std::vector<LiveItem> live = live_at(job.trace, bill.bytes, bill.peak.at);
  const std::vector<PeakFold> items = fold_items(job.trace, bill.bytes);
  for (std::size_t item = 0; item < items.size(); ++item) {
    LineItem line = device_line(job, item, items[item], live);
    if (line.bytes != 0) bill.items.push_back(std::move(line));
  }
  std::stable_sort(bill.items.begin(), bill.items.end(),
                   [](const LineItem& a, const LineItem& b) { return a.at_peak > b.at_peak; });
  if (!job.activations_known) add_unknown_activations(bill.items);
  bill.items.push_back(runtime_line("runtime.context", context_bytes(hardware, plan)));
  bill.items.back().source = context_source(hardware, plan);
  for (const Communicator& one : communicators(plan, hardware, job.tied_embeddings)) {
    bill.items.push_back(runtime_line(one.id, one.bytes));
    bill.items.back().formula = std::to_string(one.ranks) + " ranks; " + bill.items.back().formula;
  }
  add_lines(bill.items, Place::host, job.host);
  add_lines(bill.items, Place::nvme, job.nvme);
  add_moments(bill, job);
  return bill;
}

Timeline make_timeline(const Simulation& job, const Bill& bill) {
  const TimelineFold fold = fold_timeline(job.trace, bill.bytes, kTimelinePoints);
  Timeline timeline;
  for (const TimelineFold::Span& span : fold.spans)
    timeline.spans.push_back(
        {job.trace.moments[static_cast<std::size_t>(span.moment)], static_cast<std::int64_t>(span.points)});
  for (const LineItem& item : bill.items) {
    const auto found = std::find(job.trace.items.begin(), job.trace.items.end(), item.id);
    if (found == job.trace.items.end() || item.where != Place::device) continue;
    Timeline::Line line{item.id, {}};
    const auto index = static_cast<std::size_t>(found - job.trace.items.begin());
    for (const std::vector<std::int64_t>& point : fold.points) line.live.push_back(point[index]);
    timeline.lines.push_back(std::move(line));
  }
  return timeline;
}

}  // namespace membill
