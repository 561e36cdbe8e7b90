// json and jsonl: the whole report. Keys and their order are a promise: data/schema/report.schema.json.
#include "membill/version.h"
#include "report/formats.h"
#include "report/json_writer.h"
#include "report/plan_tree.h"
#include "report/schema_name.h"
#include "report/text.h"

namespace membill::report {
namespace {

void write(JsonWriter& out, std::string_view key, std::string_view value) {
  out.key(key);
  out.text(value);
}

void write(JsonWriter& out, std::string_view key, std::optional<std::int64_t> value) {
  out.key(key);
  out.integer(value);
}

void write(JsonWriter& out, std::string_view key, const Range& range) {
  out.key(key);
  out.begin_object(true);
  write(out, "low", range.low);
  write(out, "likely", range.likely);
  write(out, "high", range.high);
  out.end_object();
}

void write(JsonWriter& out, std::string_view key, const std::vector<std::string>& texts) {
  out.key(key);
  out.begin_array();
  for (const std::string& text : texts) out.text(text);
  out.end_array();
}

void write_model(JsonWriter& out, const ReportModel& model) {
  out.key("model");
  out.begin_object();
  write(out, "name", model.name);
  write(out, "family", model.family);
  write(out, "parameters", model.parameters);
  write(out, "active_parameters", model.active_parameters);
  write(out, "trainable_parameters", model.trainable_parameters);
  write(out, "layers", model.layers);
  write(out, "hidden", model.hidden);
  write(out, "vocab", model.vocab);
  write(out, "source", model.source);
  out.end_object();
}

void write_hardware(JsonWriter& out, const ReportHardware& hardware) {
  out.key("hardware");
  out.begin_object();
  out.key("name");
  if (hardware.name) {
    out.text(*hardware.name);
  } else {
    out.null();
  }
  write(out, "count", hardware.count);
  write(out, "nodes", hardware.nodes);
  write(out, "usable_bytes", hardware.usable_bytes);
  write(out, "host_bytes", hardware.host_bytes);
  out.end_object();
}

void write_totals(JsonWriter& out, const Report& report) {
  out.key("totals");
  out.begin_object();
  write(out, "requested", report.totals.requested);
  write(out, "allocated", report.totals.allocated);
  write(out, "reserved", report.totals.reserved);
  write(out, "device", report.totals.device);
  write(out, "host", report.totals.host);
  write(out, "nvme", report.totals.nvme);
  out.end_object();
  out.key("at_least");
  out.boolean(report.at_least);
  out.key("peak");
  out.begin_object(true);
  write(out, "moment", report.peak_moment);
  write(out, "rank", report.peak_rank);
  out.end_object();
}

void write_moments(JsonWriter& out, const std::vector<Moment>& moments) {
  out.key("moments");
  out.begin_array();
  for (const Moment& moment : moments) {
    out.begin_object(true);
    write(out, "name", moment.name);
    write(out, "rank", moment.rank);
    write(out, "requested", moment.requested);
    write(out, "allocated", moment.allocated);
    write(out, "end", moment.end);
    out.end_object();
  }
  out.end_array();
}

void write_timeline(JsonWriter& out, const Timeline& timeline) {
  out.key("timeline");
  out.begin_object();
  out.key("spans");
  out.begin_array();
  for (const Timeline::Span& span : timeline.spans) {
    out.begin_object(true);
    write(out, "moment", span.moment);
    write(out, "points", span.points);
    out.end_object();
  }
  out.end_array();
  out.key("lines");
  out.begin_array();
  for (const Timeline::Line& line : timeline.lines) {
    out.begin_object(true);
    write(out, "item", line.item);
    out.key("live");
    out.begin_array(true);
    for (const std::int64_t bytes : line.live) out.integer(bytes);
    out.end_array();
    out.end_object();
  }
  out.end_array();
  out.end_object();
}

void write_item(JsonWriter& out, const LineItem& item) {
  out.begin_object();
  write(out, "id", item.id);
  write(out, "label", item.label);
  write(out, "category", item.category);
  write(out, "where", place_word(item.where));
  write(out, "bytes", item.bytes);
  write(out, "low", item.low);
  write(out, "high", item.high);
  write(out, "at_peak", item.at_peak);
  out.key("moments");
  out.begin_object(true);
  for (const auto& [name, bytes] : item.moments) write(out, name, bytes);
  out.end_object();
  write(out, "formula", item.formula);
  write(out, "source", item.source);
  out.end_object();
}

void write_ranks(JsonWriter& out, const std::vector<RankBill>& ranks) {
  out.key("ranks");
  out.begin_array();
  for (const RankBill& rank : ranks) {
    out.begin_object();
    write(out, "name", rank.name);
    write(out, "requested", rank.requested);
    write(out, "allocated", rank.allocated);
    write(out, "reserved", rank.reserved);
    write(out, "device", rank.device);
    out.end_object();
  }
  out.end_array();
}

void write_verdict(JsonWriter& out, const Verdict& verdict) {
  out.key("verdict");
  out.begin_object();
  write(out, "answer", answer_word(verdict.answer));
  write(out, "capacity", verdict.capacity);
  write(out, "headroom", verdict.headroom);
  write(out, "smallest_card", verdict.smallest_card);
  write(out, "because", verdict.because);
  out.end_object();
}

void write_symbols(JsonWriter& out, const std::vector<SymbolValue>& symbols) {
  out.key("symbols");
  out.begin_array();
  for (const SymbolValue& symbol : symbols) {
    out.begin_object(true);
    write(out, "symbol", symbol.symbol);
    write(out, "meaning", symbol.meaning);
    write(out, "value", symbol.value);
    out.end_object();
  }
  out.end_array();
}

std::string report_json(const Report& report, JsonLayout layout) {
  JsonWriter out(layout);
  out.begin_object();
  write(out, "schema", kReportSchema);
  write(out, "membill_version", report.membill_version.empty() ? kVersion : std::string_view(report.membill_version));
  write_model(out, report.model);
  out.key("plan");
  write_plan(out, report.plan);
  write_hardware(out, report.hardware);
  write_totals(out, report);
  write_moments(out, report.moments);
  write_timeline(out, report.timeline);
  out.key("items");
  out.begin_array();
  for (const LineItem& item : report.items) write_item(out, item);
  out.end_array();
  write_ranks(out, report.ranks);
  write_verdict(out, report.verdict);
  write_symbols(out, report.symbols);
  write(out, "assumptions", report.assumptions);
  write(out, "warnings", report.warnings);
  out.end_object();
  return out.take() + "\n";
}

}  // namespace

std::string render_json(const Report& report, const RenderOptions&) { return report_json(report, JsonLayout::lines); }
std::string render_jsonl(const Report& report, const RenderOptions&) {
  return report_json(report, JsonLayout::compact);
}

}  // namespace membill::report
