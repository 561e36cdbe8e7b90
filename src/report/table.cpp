// table: the bill for people, in 80 columns; share bars where the terminal is wider.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/formats.h"
#include "report/rows.h"
#include "report/text.h"

namespace membill::report {
namespace {

constexpr std::size_t kBarsFrom = 100;  // columns of a terminal that has room for share bars
constexpr std::size_t kLongestBar = 40;
constexpr std::size_t kSizeColumn = 12;  // "1023.99 MiB" and a blank
constexpr std::size_t kShareColumn = 8;
constexpr std::size_t kHighest = 26;  // "1023.99 MiB to 1023.99 MiB"
constexpr std::size_t kShortestLabel = 20;
constexpr std::size_t kShortestRangeLabel = 10;
constexpr std::size_t kLongestRangeLabel = 44;  // with three sizes: 80

class Table {
 public:
  Table(const Report& report, const RenderOptions& options)
      : report_(report),
        rows_(bill_rows(report)),
        totals_(total_rows(report)),
        width_(std::max(options.width, kMinimumWidth)),
        bars_(options.width >= kBarsFrom),
        color_(options.color) {
    with_highest_ = needs_highest(rows_.peak);
    measure();
  }

  std::string text() && {
    headline();
    bill();
    totals();
    moments();
    ranks();
    notes("ASSUMED", report_.assumptions);
    notes("WARNING", report_.warnings);
    verdict();
    return std::move(out_);
  }

 private:
  void line(std::string_view text) {
    out_ += text;
    while (!out_.empty() && out_.back() == ' ') out_.pop_back();
    out_ += '\n';
  }

  std::string painted(std::string_view text, std::string_view code) const {
    return color_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
  }
  std::string bold(std::string_view text) const { return painted(text, "1"); }

  // Text under a heading of its own, wrapped with the heading's width as indent.
  void block(std::string_view heading, std::string_view text, std::string_view code = "1") {
    constexpr std::size_t kHeading = 10;
    std::string lead = left_aligned(heading, kHeading);
    const std::string painted_lead = painted(heading, code) + lead.substr(std::min(heading.size(), lead.size()));
    bool first = true;
    for (const std::string& part : wrapped(text, width_ - kHeading)) {
      line((first ? painted_lead : std::string(kHeading, ' ')) + part);
      first = false;
    }
  }

  // The label column is as wide as the longest label needs and the other columns allow.
  void measure() {
    for (const std::vector<const LineItem*>* part : {&rows_.peak, &rows_.beside, &rows_.host}) {
      for (const LineItem* item : *part) {
        std::size_t& label = part == &rows_.peak ? label_ : range_label_;
        label = std::max(label, text_width(item->label) + (part == &rows_.peak ? 0 : 2));
      }
    }
    for (const TotalRow& row : totals_) range_label_ = std::max(range_label_, title(row).size());
    range_label_ = std::clamp(range_label_, kShortestRangeLabel, kLongestRangeLabel);
    for (const LineItem* item : rows_.peak) highest_ = std::max(highest_, text_width(highest_text(*item)));
    if (!with_highest_) highest_ = 0;
    highest_ = std::min(std::max<std::size_t>(highest_, with_highest_ ? 11 : 0), kHighest) + (with_highest_ ? 2 : 0);
    label_ = std::clamp(label_, kShortestLabel, width_ - kSizeColumn - kShareColumn - highest_);
  }

  void headline() {
    for (const std::string& text : {model_line(report_), plan_line(report_), hardware_line(report_)}) {
      for (const std::string& part : wrapped(text, width_)) line(shortened(part, width_));
    }
    line("");
  }

  std::string bar(std::int64_t part) const {
    const std::int64_t total = report_.totals.requested.likely.value_or(0);
    const std::size_t used = label_ + kSizeColumn + kShareColumn + highest_ + 2;
    if (!bars_ || total <= 0 || used >= width_) return {};
    const std::size_t longest = std::min(width_ - used, kLongestBar);
    const double share = static_cast<double>(part) / static_cast<double>(total);
    const auto length = static_cast<std::size_t>(std::lround(share * static_cast<double>(longest)));
    return "  " + std::string(std::min(length, longest), '#');
  }

  std::string cells(std::string_view label, std::string_view size, std::string_view share,
                    std::string_view highest) const {
    return left_aligned(shortened(label, label_), label_) + right_aligned(size, kSizeColumn) +
           right_aligned(share, kShareColumn) + right_aligned(highest, highest_);
  }

  void bill() {
    line(bold(cells("", "at the peak", "share", with_highest_ ? "own highest" : "")));
    const std::int64_t total = report_.totals.requested.likely.value_or(0);
    for (const LineItem* item : rows_.peak) {
      const std::int64_t share = item->at_peak.value_or(0);
      const bool counts = item->bytes && share > 0;
      const std::string size = counts ? size_text(share) : item->bytes ? "-" : "unknown";
      line(cells(item->label, size, counts ? share_text(share, total) : "", with_highest_ ? highest_text(*item) : "") +
           (counts ? bar(share) : ""));
    }
    const std::string sum = (report_.at_least ? "at least " : "") + size_text(report_.totals.requested.likely);
    line(bold(left_aligned("TOTAL", label_ + kSizeColumn - text_width(sum)) + sum +
              right_aligned(share_text(total, total), kShareColumn)));
    line("");
  }

  void totals() {
    line(bold(range_cells("", "low", "likely", "high")));
    for (const TotalRow& row : totals_) {
      if (row.range == &report_.totals.device) ranged(rows_.beside, Place::device);
      if (row.range == &report_.totals.host) ranged(rows_.host, Place::host);
      if (row.range == &report_.totals.nvme) ranged(rows_.host, Place::nvme);
      range(title(row), *row.range);
    }
    line("");
  }

  static std::string title(const TotalRow& row) { return fmt::format("{} ({})", row.name, row.note); }

  std::string range_cells(std::string_view name, std::string_view low, std::string_view likely,
                          std::string_view high) const {
    return left_aligned(shortened(name, range_label_), range_label_) + right_aligned(low, kSizeColumn) +
           right_aligned(likely, kSizeColumn) + right_aligned(high, kSizeColumn);
  }

  void range(std::string_view name, const Range& range) {
    const bool exact = range.low == range.high;
    const bool bound = report_.at_least && range.likely && range.low == range.likely;
    const std::string likely = (bound ? ">= " : "") + size_text(range.likely);
    line(range_cells(name, exact ? "" : size_text(range.low), likely, exact ? "" : size_text(range.high)));
  }

  void ranged(const std::vector<const LineItem*>& items, Place place) {
    for (const LineItem* item : items) {
      if (item->where == place) range("+ " + item->label, {item->low, item->bytes, item->high});
    }
  }

  void moments() {
    if (report_.moments.empty()) return;
    line(bold(fmt::format("{:<10}{:>13}{:>13}{:>13}", "moment", "requested", "allocated", "at its end")));
    for (const Moment& moment : report_.moments) {
      const bool deciding = moment.name == report_.peak_moment;
      line(fmt::format("{:<10}{:>13}{:>13}{:>13}{}", shortened(moment.name, 10), size_text(moment.requested),
                       size_text(moment.allocated), size_text(moment.end), deciding ? "  the peak" : ""));
    }
    line("");
  }

  void ranks() {
    if (report_.ranks.size() < 2) return;
    line(bold(fmt::format("{:<10}{:>12}{:>12}{:>12}{:>12}{:>12}", "rank", "requested", "allocated", "reserved",
                          "device", "headroom")));
    for (const RankBill& rank : report_.ranks) {
      line(fmt::format("{:<10}{:>12}{:>12}{:>12}{:>12}{:>12}{}", shortened(rank.name, 10),
                       size_text(rank.requested.likely), size_text(rank.allocated.likely),
                       size_text(rank.reserved.likely), size_text(rank.device.likely),
                       size_text(headroom_of(report_, rank)), rank.name == report_.peak_rank ? "  decides" : ""));
    }
    line("");
  }

  void notes(std::string_view heading, const std::vector<std::string>& texts) {
    for (const std::string& text : texts) block(heading, text, heading == "WARNING" ? "33" : "2");
    if (!texts.empty()) line("");
  }

  static std::string_view answer_color(Answer answer) {
    switch (answer) {
      case Answer::fits: return "1;32";
      case Answer::tight: return "1;33";
      case Answer::does_not_fit: return "1;31";
      case Answer::unknown: return "1;35";
      case Answer::none: break;
    }
    return "1";
  }

  // Host memory has a verdict of its own, where a node's is known.
  void host_verdict() {
    const ReportHardware& machine = report_.hardware;
    const std::int64_t each = report_.totals.host.likely.value_or(0);
    if (!machine.host_bytes || each == 0) return;
    const std::int64_t needed = checked_mul(each, machine.count / machine.nodes);
    block("HOST", fmt::format("{}: {} of {} a node", needed <= *machine.host_bytes ? "fits" : "does-not-fit",
                              size_text(needed), size_text(*machine.host_bytes)));
  }

  void verdict() {
    const Verdict& verdict = report_.verdict;
    if (!report_.peak_moment.empty()) block("PEAK", "in " + peak_text(report_));
    if (verdict.capacity) block("CAPACITY", size_text(*verdict.capacity));
    if (verdict.headroom) block("HEADROOM", size_text(*verdict.headroom));
    host_verdict();
    if (verdict.smallest_card)
      block("SMALLEST", size_text(*verdict.smallest_card) + " for the allocator is the least that survives");
    const std::string because = because_text(report_);
    block("VERDICT", fmt::format("{}{}{}", answer_word(verdict.answer), because.empty() ? "" : ": ", because),
          answer_color(verdict.answer));
  }

  const Report& report_;
  Rows rows_;
  std::vector<TotalRow> totals_;
  std::size_t width_;
  bool bars_;
  bool color_;
  bool with_highest_ = false;
  std::size_t label_ = 0;
  std::size_t range_label_ = 0;
  std::size_t highest_ = 0;
  std::string out_;
};

}  // namespace

std::string render_table(const Report& report, const RenderOptions& options) { return Table(report, options).text(); }

}  // namespace membill::report
