// markdown: the bill as tables for an issue, a wiki or a pull request.
#include <fmt/format.h>

#include "report/formats.h"
#include "report/rows.h"
#include "report/text.h"

namespace membill::report {
namespace {

// Text that cannot end a table cell or start markup.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : clean_text(text)) {
    if (std::string_view("|*_`<>[]\\").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

void bill(std::string& out, const Report& report) {
  const std::int64_t total = report.totals.requested.likely.value_or(0);
  out += "| item | at the peak | share | own highest |\n| --- | ---: | ---: | ---: |\n";
  for (const LineItem* item : bill_rows(report).peak) {
    const std::int64_t share = item->at_peak.value_or(0);
    const bool counts = item->bytes && share > 0;
    out += fmt::format("| {} | {} | {} | {} |\n", escaped(item->label),
                       counts        ? size_text(share)
                       : item->bytes ? "-"
                                     : "unknown",
                       counts ? share_text(share, total) : "", highest_text(*item));
  }
  const std::string moment = report.peak_moment.empty() ? "" : " in " + escaped(peak_text(report));
  out += fmt::format("| **TOTAL{}** | **{}{}** | {} | |\n\n", moment, report.at_least ? "at least " : "",
                     size_text(report.totals.requested.likely), share_text(total, total));
}

void totals(std::string& out, const Report& report) {
  out += "| total | low | likely | high | compare with |\n| --- | ---: | ---: | ---: | --- |\n";
  for (const TotalRow& row : total_rows(report)) {
    out +=
        fmt::format("| {} | {} | {} | {} | {}{} |\n", row.name, size_text(row.range->low), size_text(row.range->likely),
                    size_text(row.range->high), report.at_least ? "at least, " : "", escaped(row.note));
  }
  out += '\n';
}

void beside(std::string& out, const Report& report) {
  const Rows rows = bill_rows(report);
  if (rows.beside.empty() && rows.host.empty()) return;
  out += "| beside the tensors | where | bytes |\n| --- | --- | ---: |\n";
  for (const std::vector<const LineItem*>* part : {&rows.beside, &rows.host}) {
    for (const LineItem* item : *part) {
      out += fmt::format("| {} | {} | {} |\n", escaped(item->label), place_word(item->where),
                         range_text({item->low, item->bytes, item->high}));
    }
  }
  out += '\n';
}

void moments(std::string& out, const Report& report) {
  if (report.moments.empty()) return;
  out += "| moment | requested | allocated | at its end |\n| --- | ---: | ---: | ---: |\n";
  for (const Moment& moment : report.moments) {
    out += fmt::format("| {} | {} | {} | {} |\n", escaped(moment.name), size_text(moment.requested),
                       size_text(moment.allocated), size_text(moment.end));
  }
  out += '\n';
}

void ranks(std::string& out, const Report& report) {
  if (report.ranks.size() < 2) return;
  out +=
      "| rank | requested | allocated | reserved | device | headroom |\n| --- | ---: | ---: | ---: | ---: | ---: |\n";
  for (const RankBill& rank : report.ranks) {
    out += fmt::format("| {} | {} | {} | {} | {} | {} |\n", escaped(rank.name), size_text(rank.requested.likely),
                       size_text(rank.allocated.likely), size_text(rank.reserved.likely), size_text(rank.device.likely),
                       size_text(headroom_of(report, rank)));
  }
  out += '\n';
}

void notes(std::string& out, std::string_view heading, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  out += fmt::format("**{}**\n\n", heading);
  for (const std::string& text : texts) out += fmt::format("* {}\n", escaped(text));
  out += '\n';
}

void verdict(std::string& out, const Report& report) {
  const Verdict& verdict = report.verdict;
  const std::string because = because_text(report);
  out +=
      fmt::format("**Verdict: {}**{}{}\n", answer_word(verdict.answer), because.empty() ? "" : ": ", escaped(because));
  if (verdict.capacity) out += fmt::format("\n* capacity: {}", size_text(*verdict.capacity));
  if (verdict.headroom) out += fmt::format("\n* headroom: {}", size_text(*verdict.headroom));
  if (verdict.smallest_card)
    out += fmt::format("\n* least allocator capacity that survives: {}", size_text(*verdict.smallest_card));
  if (out.back() != '\n') out += '\n';
}

}  // namespace

std::string render_markdown(const Report& report, const RenderOptions&) {
  std::string out = fmt::format("### {}\n\n", escaped(report.model.name));
  for (const std::string& line : {model_line(report), plan_line(report), hardware_line(report)}) {
    if (!line.empty()) out += escaped(line) + "\n\n";
  }
  bill(out, report);
  totals(out, report);
  beside(out, report);
  moments(out, report);
  ranks(out, report);
  notes(out, "Assumptions", report.assumptions);
  notes(out, "Warnings", report.warnings);
  verdict(out, report);
  return out;
}

}  // namespace membill::report
