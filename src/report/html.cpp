// html: the bill as one page that needs nothing from elsewhere.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "membill/version.h"
#include "report/formats.h"
#include "report/picture.h"
#include "report/rows.h"
#include "report/text.h"
#include "report/xml.h"

namespace membill::report {
namespace {

constexpr std::string_view kStyle =
    R"(body{margin:0 auto;padding:24px 20px 40px;max-width:1000px;background:var(--page);
color:var(--ink);font-size:15px;line-height:1.45}
h1{font-size:22px;margin:0 0 4px}
h2{font-size:17px;margin:32px 0 8px}
p{margin:2px 0}
.soft{color:var(--soft)}
.wide{overflow-x:auto}
svg.mb{width:100%;height:auto;min-width:720px;display:block}
table{border-collapse:collapse;min-width:60%}
th,td{padding:3px 14px 3px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--grid)}
td:first-child{min-width:11em}
th{color:var(--soft);font-weight:600}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.sum td{font-weight:600}
.key{display:inline-block;width:12px;height:12px;margin-right:8px;vertical-align:-1px;border-radius:2px}
.verdict{margin:16px 0;padding:10px 14px;border:1px solid var(--grid);border-left:6px solid var(--soft);border-radius:4px}
.fits{border-left-color:#117733}.tight{border-left-color:#ddaa33}.does-not-fit{border-left-color:#bb2244}
.unknown{border-left-color:#882255}
code{font-family:ui-monospace,Consolas,monospace;font-size:13px}
)";

// The colours of bands as backgrounds, for the keys in the bill.
std::string key_style() {
  std::string style;
  for (std::size_t i = 0; i <= kBands; ++i) style += fmt::format(".key.mb-{0}{{background:var(--c{0})}}\n", i);
  return style;
}

class Page {
 public:
  explicit Page(const Report& report)
      : report_(report), rows_(bill_rows(report)), view_(view_timeline(report, kBands)) {}

  std::string text() && {
    head();
    if (!view_.sums.empty()) picture();
    bill();
    totals();
    moments();
    ranks();
    notes("Warnings", report_.warnings);
    notes("Assumptions", report_.assumptions);
    sources();
    const std::string_view version = report_.membill_version.empty() ? kVersion : report_.membill_version;
    add("<p class=\"soft\">membill {}</p>\n</body>\n</html>\n", escaped_xml(version));
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  void head() {
    add("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{} - membill</title>\n<style>\n{}{}{}</style>\n"
        "</head>\n<body class=\"mb\">\n<h1>{}</h1>\n",
        escaped_xml(report_.model.name), picture_style(), kStyle, key_style(), escaped_xml(report_.model.name));
    for (const std::string& line : {model_line(report_), plan_line(report_), hardware_line(report_)})
      if (!line.empty()) add("<p>{}</p>\n", escaped_xml(line));
    verdict();
  }

  void verdict() {
    const Verdict& verdict = report_.verdict;
    const std::string_view word = answer_word(verdict.answer);
    const std::string because = because_text(report_);
    add("<div class=\"verdict {}\">\n<p><strong>{}</strong>{}{}</p>\n", word,
        verdict.answer == Answer::none ? "no verdict" : word, because.empty() ? "" : ": ", escaped_xml(because));
    if (verdict.capacity)
      add("<p class=\"soft\">capacity {}, headroom {}</p>\n", size_text(*verdict.capacity),
          size_text(verdict.headroom));
    if (verdict.smallest_card)
      add("<p class=\"soft\">least allocator capacity that survives: {}</p>\n", size_text(*verdict.smallest_card));
    add("</div>\n");
  }

  void picture() { add("<div class=\"wide\">\n{}</div>\n", timeline_svg(report_, view_, false)); }

  void begin_table(std::string_view heading, std::initializer_list<std::string_view> texts,
                   std::initializer_list<std::string_view> numbers) {
    add("<h2>{}</h2>\n<div class=\"wide\">\n<table>\n<tr>", heading);
    for (const std::string_view text : texts) add("<th>{}</th>", text);
    for (const std::string_view number : numbers) add("<th class=\"n\">{}</th>", number);
    add("</tr>\n");
  }
  void end_table() { add("</table>\n</div>\n"); }
  void number(std::string_view text) { add("<td class=\"n\">{}</td>", text); }

  // A square in the colour that the item has in the picture.
  [[nodiscard]] std::string key(const LineItem& item) const {
    for (std::size_t band = 0; band < view_.bands.size(); ++band)
      if (view_.bands[band].item == item.id)
        return fmt::format("<span class=\"key {}\"></span>", band_class(view_, band));
    return fmt::format("<span class=\"key{}\"></span>",
                       item.at_peak.value_or(0) > 0 ? fmt::format(" mb-{}", kBands) : "");
  }

  void bill() {
    begin_table("What lives at the peak", {"item"}, {"at the peak", "share", "own highest"});
    const std::int64_t total = report_.totals.requested.likely.value_or(0);
    for (const LineItem* item : rows_.peak) {
      const std::int64_t share = item->at_peak.value_or(0);
      const bool counts = item->bytes && share > 0;
      add("<tr><td>{}{}</td>", key(*item), escaped_xml(item->label));
      number(counts ? size_text(share) : item->bytes ? "-" : "unknown");
      number(counts ? share_text(share, total) : "");
      number(highest_text(*item));
      add("</tr>\n");
    }
    add("<tr class=\"sum\"><td>TOTAL</td>");
    number((report_.at_least ? "at least " : "") + size_text(report_.totals.requested.likely));
    number(share_text(total, total));
    add("<td></td></tr>\n");
    end_table();
  }

  void range_row(std::string_view name, std::string_view note, const Range& range) {
    add("<tr><td>{}</td><td class=\"soft\">{}</td>", escaped_xml(name), escaped_xml(note));
    for (const std::optional<std::int64_t> bytes : {range.low, range.likely, range.high}) number(size_text(bytes));
    add("</tr>\n");
  }

  void totals() {
    begin_table("Totals", {"total", "compare with"}, {"low", "likely", "high"});
    for (const TotalRow& row : total_rows(report_)) range_row(row.name, row.note, *row.range);
    for (const std::vector<const LineItem*>* part : {&rows_.beside, &rows_.host})
      for (const LineItem* item : *part)
        range_row(item->label, item->where == Place::device ? "beside the tensors" : place_word(item->where),
                  {item->low, item->bytes, item->high});
    end_table();
  }

  void moments() {
    if (report_.moments.empty()) return;
    begin_table("Moments", {"moment"}, {"requested", "allocated", "at its end"});
    for (const Moment& moment : report_.moments) {
      add("<tr{}><td>{}</td>", moment.name == report_.peak_moment ? " class=\"sum\"" : "", escaped_xml(moment.name));
      number(size_text(moment.requested));
      number(size_text(moment.allocated));
      number(size_text(moment.end));
      add("</tr>\n");
    }
    end_table();
  }

  void ranks() {
    if (report_.ranks.size() < 2) return;
    begin_table("Ranks", {"rank"}, {"requested", "allocated", "reserved", "device"});
    for (const RankBill& rank : report_.ranks) {
      add("<tr{}><td>{}</td>", rank.name == report_.peak_rank ? " class=\"sum\"" : "", escaped_xml(rank.name));
      for (const Range* range : {&rank.requested, &rank.allocated, &rank.reserved, &rank.device})
        number(size_text(range->likely));
      add("</tr>\n");
    }
    end_table();
  }

  void notes(std::string_view heading, const std::vector<std::string>& texts) {
    if (texts.empty()) return;
    add("<h2>{}</h2>\n<ul>\n", heading);
    for (const std::string& text : texts) add("<li>{}</li>\n", escaped_xml(text));
    add("</ul>\n");
  }

  void sources() {
    begin_table("Formulas and sources", {"item", "at the peak", "source"}, {});
    for (const LineItem& item : report_.items) {
      add("<tr><td><code>{}</code></td><td><code>{}</code></td><td>{}</td></tr>\n", escaped_xml(item.id),
          escaped_xml(item.formula), escaped_xml(item.source));
    }
    end_table();
    if (report_.symbols.empty()) return;
    add("<p class=\"soft\">");
    for (const SymbolValue& symbol : report_.symbols)
      add("{}<code>{}</code> {} = {}", &symbol == &report_.symbols.front() ? "" : "; ", escaped_xml(symbol.symbol),
          escaped_xml(symbol.meaning), count_text(symbol.value));
    add("</p>\n");
  }

  const Report& report_;
  Rows rows_;
  TimelineView view_;
  std::string out_;
};

}  // namespace

std::string render_html(const Report& report, const RenderOptions&) { return Page(report).text(); }

}  // namespace membill::report
