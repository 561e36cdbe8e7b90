#include "report/formats.h"

#include <array>

namespace membill::report {
namespace {

constexpr std::array<Format, 10> kFormats{{
    {"table", "for people: rows by size, totals, moments, verdict", render_table},
    {"json", "the whole report, indented; schema membill/report/1", render_json, true},
    {"jsonl", "the whole report on one line", render_jsonl, true},
    {"csv", "a row for each item and each total, comma separated", render_csv},
    {"tsv", "the same rows, tab separated", render_tsv},
    {"markdown", "tables for an issue, a wiki or a pull request", render_markdown},
    {"chart", "bars and the step's skyline, for a terminal", render_chart, true},
    {"svg", "the step as a picture: items stacked, the peak, the card's capacity", render_svg, true},
    {"html", "the bill and the picture as one page that needs nothing else", render_html, true},
    {"brief", "the verdict on one line", render_brief},
}};

}  // namespace

std::span<const Format> formats() { return kFormats; }

const Format* find_format(std::string_view name) {
  for (const Format& format : kFormats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

}  // namespace membill::report
