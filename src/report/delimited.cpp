// csv and tsv: one physical row for each item and each total, exact bytes.
#include <fmt/format.h>

#include <array>

#include "report/formats.h"
#include "report/text.h"

namespace membill::report {
namespace {

constexpr std::array<std::string_view, 11> kCsvColumns{"kind", "id",   "label",   "category", "where", "bytes",
                                                       "low",  "high", "at_peak", "formula",  "source"};

std::string csv_cell(std::string_view text) {
  std::string clean = clean_text(text);
  if (clean.find_first_of(",\"") == std::string::npos) return clean;
  std::string quoted = "\"";
  for (const char c : clean) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted += '"';
}

// Clean text holds no tab and no newline, so nothing needs an escape.
std::string tsv_cell(std::string_view text) { return clean_text(text); }

struct Dialect {
  char separator;
  std::string (*cell)(std::string_view text);
};
constexpr Dialect kCsv{',', csv_cell};
constexpr Dialect kTsv{'\t', tsv_cell};

using Row = std::array<std::string, kCsvColumns.size()>;

std::string number(std::optional<std::int64_t> value) { return value ? fmt::format("{}", *value) : std::string(); }

Row total_row(std::string_view name, std::string_view place, const Range& range) {
  return {"total",
          std::string(name),
          {},
          {},
          std::string(place),
          number(range.likely),
          number(range.low),
          number(range.high),
          {},
          {},
          {}};
}

Row item_row(const LineItem& item) {
  return {"item",
          item.id,
          item.label,
          item.category,
          std::string(place_word(item.where)),
          number(item.bytes),
          number(item.low),
          number(item.high),
          number(item.at_peak),
          item.formula,
          item.source};
}

void append_row(std::string& out, const Row& row, const Dialect& dialect) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0) out += dialect.separator;
    out += dialect.cell(row[i]);
  }
  out += '\n';
}

std::string delimited(const Report& report, const Dialect& dialect) {
  std::string out;
  Row header;
  for (std::size_t i = 0; i < kCsvColumns.size(); ++i) header[i] = kCsvColumns[i];
  append_row(out, header, dialect);
  for (const LineItem& item : report.items) append_row(out, item_row(item), dialect);
  const Totals& totals = report.totals;
  append_row(out, total_row("requested", "device", totals.requested), dialect);
  append_row(out, total_row("allocated", "device", totals.allocated), dialect);
  append_row(out, total_row("reserved", "device", totals.reserved), dialect);
  append_row(out, total_row("device", "device", totals.device), dialect);
  append_row(out, total_row("host", "host", totals.host), dialect);
  append_row(out, total_row("nvme", "nvme", totals.nvme), dialect);
  return out;
}

}  // namespace

std::string render_csv(const Report& report, const RenderOptions&) { return delimited(report, kCsv); }
std::string render_tsv(const Report& report, const RenderOptions&) { return delimited(report, kTsv); }

}  // namespace membill::report
