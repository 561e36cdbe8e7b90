#include "cli/sweep_rows.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "cli/listing.h"
#include "membill/catalog.h"
#include "report/json_writer.h"
#include "report/text.h"

namespace membill::cli {
namespace {

void append_count(std::int64_t value, std::string& out) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out.append(digits.data(), end.ptr);
}

std::string json_text(std::string_view text) {
  report::JsonWriter writer(report::JsonLayout::compact);
  writer.text(text);
  return writer.take();
}

// Whether a key's flag is --`word`.
bool is_flag(const std::string& word, const std::string& key) {
  const PlanFieldRow* row = find_plan_field(key);
  return row != nullptr && row->flag == "--" + word;
}

}  // namespace

std::vector<SweepRows::Column> SweepRows::all_columns(const SweepGrid& grid, bool replay) {
  std::vector<Column> columns{{"case", Kind::number, 0}};
  for (std::size_t i = 0; i < grid.axes().size(); ++i) columns.push_back({grid.axes()[i].column, Kind::axis, i});
  const std::vector<Column> folded{{"batch", Kind::batch},       {"seq", Kind::seq},
                                   {"tokens", Kind::tokens},     {"requested", Kind::requested},
                                   {"at_least", Kind::at_least}, {"peak_moment", Kind::peak_moment}};
  const std::vector<Column> replayed{{"allocated", Kind::allocated},
                                     {"reserved", Kind::reserved},
                                     {"device", Kind::device},
                                     {"headroom", Kind::headroom},
                                     {"verdict", Kind::verdict}};
  columns.insert(columns.end(), folded.begin(), folded.end());
  if (replay) columns.insert(columns.end(), replayed.begin(), replayed.end());
  columns.push_back({"problem", Kind::problem, 0});
  return columns;
}

SweepRows::SweepRows(const SweepGrid& grid, bool replay, RowFormat format, const std::vector<std::string>& fields,
                     Problems& problems)
    : grid_(grid), format_(format), columns_(all_columns(grid, replay)) {
  if (fields.empty()) return;
  std::vector<Column> chosen;
  std::vector<std::string_view> names;
  for (const Column& column : columns_) names.push_back(column.name);
  for (const std::string& field : fields) {
    const auto found = std::find_if(columns_.begin(), columns_.end(), [&](const Column& column) {
      return column.name == field || is_flag(field, column.name);
    });
    if (found != columns_.end()) {
      chosen.push_back(*found);
      continue;
    }
    Problem problem = unknown_name("column", field, names);
    problem.key = "--fields";
    if (nearest_word(field, names).empty()) problem.hint = join({names.begin(), names.end()}, " ");
    problems.add(std::move(problem));
  }
  if (!chosen.empty()) columns_ = std::move(chosen);
}

std::string SweepRows::header() const {
  if (format_ == RowFormat::jsonl) return {};
  std::string out;
  for (const Column& column : columns_) {
    if (!out.empty()) out += format_ == RowFormat::csv ? ',' : '\t';
    out += column.name;
  }
  return out + "\n";
}

void SweepRows::append(const SweepCase& one, std::string& out) const {
  const bool json = format_ == RowFormat::jsonl;
  if (json) out += '{';
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (i > 0) out += format_ == RowFormat::tsv ? '\t' : ',';
    if (json) out += "\"" + columns_[i].name + "\":";
    append_cell(columns_[i], one, out);
  }
  out += json ? "}\n" : "\n";
}

void SweepRows::append_text(std::string_view text, std::string& out) const {
  switch (format_) {
    case RowFormat::csv: out += csv_quoted(report::clean_text(text)); break;
    case RowFormat::tsv: out += report::clean_text(text); break;
    case RowFormat::jsonl: out += json_text(text); break;
  }
}

void SweepRows::append_none(std::string& out) const {
  if (format_ == RowFormat::jsonl) out += "null";
}

void SweepRows::append_cell(const Column& column, const SweepCase& one, std::string& out) const {
  const auto count = [&](std::optional<std::int64_t> value) { value ? append_count(*value, out) : append_none(out); };
  switch (column.kind) {
    case Kind::number: return append_count(static_cast<std::int64_t>(one.number), out);
    case Kind::batch: return append_count(one.batch, out);
    case Kind::seq: return append_count(one.seq, out);
    case Kind::axis: {
      const std::string& text = grid_.value(column.axis, one.base);
      if (format_ == RowFormat::jsonl && flag_value(text).is_number()) {
        out += text;
        return;
      }
      return append_text(text, out);
    }
    case Kind::problem: return one.problem.empty() ? append_none(out) : append_text(one.problem, out);
    default: break;
  }
  if (!one.figures) return append_none(out);
  const CaseFigures& figures = *one.figures;
  switch (column.kind) {
    case Kind::tokens: return append_count(one.tokens, out);
    case Kind::requested: return append_count(figures.requested, out);
    case Kind::at_least: out += figures.at_least ? "true" : "false"; return;
    case Kind::peak_moment: return append_text(figures.peak_moment, out);
    case Kind::allocated: return count(figures.allocated);
    case Kind::reserved: return count(figures.reserved);
    case Kind::device: return count(figures.device);
    case Kind::headroom: return count(figures.headroom);
    default: return append_text(report::answer_word(figures.answer), out);
  }
}

}  // namespace membill::cli
