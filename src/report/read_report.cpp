#include "report/read_report.h"

#include <algorithm>

#include "report/object_reader.h"
#include "report/plan_tree.h"
#include "report/schema_name.h"
#include "report/text.h"

namespace membill::report {
namespace {

void read(ObjectReader& object, std::string_view key, Range& range) {
  object.object(key, [&](ObjectReader& fields) {
    fields.read("low", range.low);
    fields.read("likely", range.likely);
    fields.read("high", range.high);
  });
}

void read_model(ObjectReader& fields, ReportModel& model) {
  fields.read("name", model.name);
  fields.read("family", model.family);
  fields.read("parameters", model.parameters);
  fields.read("active_parameters", model.active_parameters);
  fields.read("trainable_parameters", model.trainable_parameters);
  fields.read("layers", model.layers);
  fields.read("hidden", model.hidden);
  fields.read("vocab", model.vocab);
  fields.read("source", model.source);
}

void read_hardware(ObjectReader& fields, ReportHardware& hardware) {
  fields.read("name", hardware.name);
  fields.read("count", hardware.count);
  fields.read("nodes", hardware.nodes);
  fields.read("usable_bytes", hardware.usable_bytes);
  fields.read("host_bytes", hardware.host_bytes);
}

void read_totals(ObjectReader& fields, Totals& totals) {
  read(fields, "requested", totals.requested);
  read(fields, "allocated", totals.allocated);
  read(fields, "reserved", totals.reserved);
  read(fields, "device", totals.device);
  read(fields, "host", totals.host);
  read(fields, "nvme", totals.nvme);
}

void read_moment(ObjectReader& fields, Moment& moment) {
  fields.read("name", moment.name);
  fields.read("rank", moment.rank);
  fields.read("requested", moment.requested);
  fields.read("allocated", moment.allocated);
  fields.read("end", moment.end);
}

void read_span(ObjectReader& fields, Timeline::Span& span) {
  fields.read("moment", span.moment);
  fields.read("points", span.points);
}

void read_timeline_line(ObjectReader& fields, Timeline::Line& line) {
  fields.read("item", line.item);
  fields.integers("live", line.live);
}

void read_timeline(ObjectReader& fields, Timeline& timeline) {
  fields.list<Timeline::Span>("spans", timeline.spans, read_span);
  fields.list<Timeline::Line>("lines", timeline.lines, read_timeline_line);
}

void read_item(ObjectReader& fields, LineItem& item) {
  fields.read("id", item.id);
  fields.read("label", item.label);
  fields.read("category", item.category);
  fields.choose<Place>("where", item.where, {Place::device, Place::host, Place::nvme}, place_word);
  fields.read("bytes", item.bytes);
  fields.read("low", item.low);
  fields.read("high", item.high);
  fields.read("at_peak", item.at_peak);
  fields.counts("moments", item.moments);
  fields.read("formula", item.formula);
  fields.read("source", item.source);
}

void read_rank(ObjectReader& fields, RankBill& rank) {
  fields.read("name", rank.name);
  read(fields, "requested", rank.requested);
  read(fields, "allocated", rank.allocated);
  read(fields, "reserved", rank.reserved);
  read(fields, "device", rank.device);
}

void read_verdict(ObjectReader& fields, Verdict& verdict) {
  fields.choose<Answer>("answer", verdict.answer,
                        {Answer::fits, Answer::tight, Answer::does_not_fit, Answer::unknown, Answer::none},
                        answer_word);
  fields.read("capacity", verdict.capacity);
  fields.read("headroom", verdict.headroom);
  fields.read("smallest_card", verdict.smallest_card);
  fields.read("because", verdict.because);
}

void read_symbol(ObjectReader& fields, SymbolValue& symbol) {
  fields.read("symbol", symbol.symbol);
  fields.read("meaning", symbol.meaning);
  fields.read("value", symbol.value);
}

// Keys of the plan become dotted paths: one that is empty or holds a dot would be another path.
void check_plan_keys(const Value& plan, const std::string& file, const std::string& path, Problems& problems) {
  for (const auto& [key, value] : plan.entries()) {
    if (key.empty() || key.find('.') != std::string::npos) {
      problems.add({file, path, "has the key " + quoted(key) + ", which no plan has", ""});
    } else if (value.is_map()) {
      check_plan_keys(value, file, path + "." + key, problems);
    }
  }
}

void read_fields(ObjectReader& fields, Report& report) {
  std::string schema;
  fields.read("schema", schema);
  fields.read("membill_version", report.membill_version);
  fields.object("model", [&](ObjectReader& part) { read_model(part, report.model); });
  if (const Value* plan = fields.map("plan")) report.plan = read_plan_fields(*plan);
  fields.object("hardware", [&](ObjectReader& part) { read_hardware(part, report.hardware); });
  fields.object("totals", [&](ObjectReader& part) { read_totals(part, report.totals); });
  fields.read("at_least", report.at_least);
  fields.object("peak", [&](ObjectReader& part) {
    part.read("moment", report.peak_moment);
    part.read("rank", report.peak_rank);
  });
  fields.list<Moment>("moments", report.moments, read_moment);
  if (fields.has("timeline"))  // what was saved before there were pictures has none
    fields.object("timeline", [&](ObjectReader& part) { read_timeline(part, report.timeline); });
  fields.list<LineItem>("items", report.items, read_item);
  fields.list<RankBill>("ranks", report.ranks, read_rank);
  fields.object("verdict", [&](ObjectReader& part) { read_verdict(part, report.verdict); });
  fields.list<SymbolValue>("symbols", report.symbols, read_symbol);
  fields.texts("assumptions", report.assumptions);
  fields.texts("warnings", report.warnings);
}

void check_sum(const Report& report, const std::string& file, Problems& problems) {
  std::int64_t sum = 0;
  for (const LineItem& item : report.items) {
    if (item.where == Place::device) sum = checked_add(sum, item.at_peak.value_or(0));
  }
  const std::optional<std::int64_t> total = report.totals.requested.likely;
  if (total && *total != sum) {
    problems.add({file, "totals.requested",
                  "is " + count_text(*total) + " but the items at the peak sum to " + count_text(sum), ""});
  }
}

// Every line has a figure for each point, and none is below zero: what draws them relies on it.
void check_timeline(const Timeline& timeline, const std::string& file, Problems& problems) {
  std::int64_t points = 0;
  for (const Timeline::Span& span : timeline.spans) {
    if (span.points < 1) problems.add({file, "timeline.spans", "has a span without points", ""});
    points = checked_add(points, std::max<std::int64_t>(span.points, 0));
  }
  std::vector<std::int64_t> sums(timeline.lines.empty() ? 0 : timeline.lines.front().live.size());
  for (const Timeline::Line& line : timeline.lines) {
    if (static_cast<std::int64_t>(line.live.size()) != points) {
      problems.add({file, "timeline.lines",
                    quoted(line.item) + " has " + count_text(static_cast<std::int64_t>(line.live.size())) +
                        " figures, the spans have " + count_text(points) + " points",
                    ""});
      return;
    }
    for (std::size_t i = 0; i < line.live.size(); ++i) {
      if (line.live[i] < 0) problems.add({file, "timeline.lines", quoted(line.item) + " has a figure below 0", ""});
      sums[i] = checked_add(sums[i], line.live[i]);
    }
  }
}

}  // namespace

Report read_report(const Value& tree, const std::string& file, Problems& problems) {
  Report report;
  const Value* schema = tree.find("schema");
  if (schema == nullptr || !schema->is_string() || schema->as_string() != kReportSchema) {
    problems.add({file, "schema", "is not a saved report of membill",
                  "needs \"schema\": \"" + std::string(kReportSchema) + "\""});
    return report;
  }
  Problems found;
  ObjectReader fields(tree, file, "", found);
  read_fields(fields, report);
  fields.refuse_others();
  if (const Value* plan = tree.find("plan")) check_plan_keys(*plan, file, "plan", found);
  if (found.empty()) check_sum(report, file, found);
  if (found.empty()) check_timeline(report.timeline, file, found);
  for (const Problem& problem : found.list()) problems.add(problem);
  return report;
}

}  // namespace membill::report
