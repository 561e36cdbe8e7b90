#include "cli/listing.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/terminal.h"
#include "report/json_writer.h"
#include "report/text.h"

namespace membill::cli {
namespace {

using report::JsonLayout;
using report::JsonWriter;

constexpr std::array<std::string_view, 5> kListingFormats{"table", "json", "jsonl", "csv", "tsv"};

// A cell as people read it: thousands separated, yes or no.
std::string cell_text(const Cell& cell) {
  switch (cell.kind()) {
    case Cell::Kind::none: return {};
    case Cell::Kind::count: return report::count_text(cell.count());
    case Cell::Kind::flag: return cell.flag() ? "yes" : "no";
    case Cell::Kind::text: return report::clean_text(cell.text());
    case Cell::Kind::texts: return report::clean_text(join(cell.texts(), ", "));
  }
  return {};
}

// A cell as programs read it.
std::string raw_text(const Cell& cell) {
  if (cell.kind() == Cell::Kind::count) return std::to_string(cell.count());
  if (cell.kind() == Cell::Kind::flag) return cell.flag() ? "true" : "false";
  if (cell.kind() == Cell::Kind::texts) return report::clean_text(join(cell.texts(), " "));
  return cell_text(cell);
}

void write_cell(JsonWriter& out, const Cell& cell) {
  switch (cell.kind()) {
    case Cell::Kind::none: return out.null();
    case Cell::Kind::count: return out.integer(cell.count());
    case Cell::Kind::flag: return out.boolean(cell.flag());
    case Cell::Kind::text: return out.text(cell.text());
    case Cell::Kind::texts: break;
  }
  out.begin_array(true);
  for (const std::string& part : cell.texts()) out.text(part);
  out.end_array();
}

void write_row(JsonWriter& out, const ListingRow& row) {
  out.begin_object();
  for (const auto& [key, cell] : row.cells) {
    out.key(key);
    write_cell(out, cell);
  }
  out.end_object();
}

std::string row_json(const ListingRow& row, JsonLayout layout) {
  JsonWriter out(layout);
  write_row(out, row);
  return out.take() + "\n";
}

std::string list_json(const Listing& listing) {
  JsonWriter out(JsonLayout::lines);
  out.begin_array();
  for (const ListingRow& row : listing.rows) write_row(out, row);
  out.end_array();
  return out.take() + "\n";
}

std::string delimited(const std::vector<const ListingRow*>& rows, bool tabs) {
  std::string out;
  const auto line = [&](const auto& text_of) {
    for (std::size_t i = 0; i < rows.front()->cells.size(); ++i) {
      if (i > 0) out += tabs ? '\t' : ',';
      out += tabs ? text_of(i) : csv_quoted(text_of(i));
    }
    out += '\n';
  };
  if (rows.empty()) return out;
  line([&](std::size_t i) { return rows.front()->cells[i].first; });
  for (const ListingRow* row : rows) {
    line([&](std::size_t i) { return raw_text(row->cells[i].second); });
  }
  return out;
}

const Cell& cell_of(const ListingRow& row, const std::string& key) {
  static const Cell kNone;
  const auto found =
      std::find_if(row.cells.begin(), row.cells.end(), [&](const auto& cell) { return cell.first == key; });
  return found == row.cells.end() ? kNone : found->second;
}

std::string table(const Listing& listing) {
  const std::size_t width = std::max<std::size_t>(terminal_width(), 80);
  std::vector<std::size_t> widths;
  for (const std::string& column : listing.short_columns) {
    std::size_t widest = column.size();
    for (const ListingRow& row : listing.rows)
      widest = std::max(widest, report::text_width(cell_text(cell_of(row, column))));
    widths.push_back(widest);
  }
  std::string out;
  const auto line = [&](const auto& text_of) {
    std::string text;
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) text += report::left_aligned(text_of(i), widths[i] + 2);
    const std::size_t indent = report::text_width(text);
    bool first = true;
    for (const std::string& part :
         report::wrapped(text_of(widths.size() - 1), width > indent + 20 ? width - indent : 20)) {
      out += (first ? text : std::string(indent, ' ')) + part + "\n";
      first = false;
    }
    if (first) out += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  };
  line([&](std::size_t i) { return listing.short_columns[i]; });
  for (const ListingRow& row : listing.rows)
    line([&](std::size_t i) { return cell_text(cell_of(row, listing.short_columns[i])); });
  return out;
}

std::string row_lines(const ListingRow& row) {
  std::size_t widest = 0;
  for (const auto& [key, cell] : row.cells) widest = std::max(widest, key.size());
  const std::size_t width = std::max<std::size_t>(terminal_width(), 80);
  std::string out;
  for (const auto& [key, cell] : row.cells) {
    std::string lead = report::left_aligned(key, widest + 2);
    for (const std::string& part : report::wrapped(cell_text(cell), width - widest - 2)) {
      out += lead + part + "\n";
      lead.assign(widest + 2, ' ');
    }
  }
  return out;
}

}  // namespace

std::string csv_quoted(const std::string& text) {
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) result.append(c == '"' ? 2 : 1, c);
  return result + "\"";
}

std::vector<OptionSpec> listing_options() {
  return {{"--format",
           Takes::value,
           "FORMAT",
           "table, json, jsonl, csv or tsv",
           "Output",
           {kListingFormats.begin(), kListingFormats.end()}}};
}

std::string listing_format(const Arguments& arguments) {
  const std::string* typed = arguments.value("--format");
  if (typed == nullptr) return "table";
  if (std::find(kListingFormats.begin(), kListingFormats.end(), *typed) != kListingFormats.end()) return *typed;
  Problem problem = unknown_name("format", *typed, {kListingFormats.begin(), kListingFormats.end()});
  problem.key = "--format";
  throw InputError(problem);
}

std::string render_listing(const Listing& listing, std::string_view format) {
  if (format == "json") return list_json(listing);
  if (format == "table") return table(listing);
  std::string out;
  std::vector<const ListingRow*> rows;
  for (const ListingRow& row : listing.rows) rows.push_back(&row);
  if (format != "jsonl") return delimited(rows, format == "tsv");
  for (const ListingRow* row : rows) out += row_json(*row, JsonLayout::compact);
  return out;
}

std::string render_row(const ListingRow& row, std::string_view format) {
  if (format == "table") return row_lines(row);
  if (format == "json") return row_json(row, JsonLayout::lines);
  if (format == "jsonl") return row_json(row, JsonLayout::compact);
  return delimited({&row}, format == "tsv");
}

Problem unknown_name(std::string_view noun, const std::string& typed, const std::vector<std::string_view>& names) {
  const std::string_view near = nearest_word(typed, names);
  std::string hint(near);
  if (near.empty()) {
    hint = "one of";
    for (const std::string_view name : names) hint.append(" ").append(name);
    if (names.size() > 12) hint = "membill " + std::string(noun) + "s lists them";
  }
  return {kCommandLine, "", "there is no " + std::string(noun) + " " + quoted(typed), hint};
}

}  // namespace membill::cli
