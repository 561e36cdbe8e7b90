#include "report/explain.h"

#include <algorithm>
#include <cstdlib>

#include "report/explain_parts.h"
#include "report/formula.h"
#include "report/text.h"

namespace membill::report {
namespace {

constexpr std::size_t kBriefItems = 5, kWidth = 80;
constexpr std::size_t kNamed = 3;  // items that a sentence names

class Walk {
 public:
  Walk(const Report& report, Depth depth, Language language)
      : report_(report), depth_(depth), language_(language), peak_(report.totals.requested.likely.value_or(0)) {}

  std::string text() {
    out_ = head_lines(report_, language_);
    if (depth_ != Depth::brief) symbols();
    items();
    if (depth_ == Depth::full) elsewhere();
    moments();
    if (depth_ != Depth::brief) {
      thumb();
      totals();
    }
    verdict();
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::string word(std::string_view key) const { return std::string(message(key, language_)); }

  void heading(const std::string& text) { out_ += "\n## " + text + "\n"; }

  // Long formulas are broken at blanks; what follows is indented.
  void lines(const std::string& text, const std::string& lead) {
    std::string start = lead;
    for (const std::string& part : wrapped(text, kWidth - lead.size())) {
      out_ += start + part + "\n";
      start.assign(text_width(lead), ' ');
    }
  }

  void symbols() {
    heading(word("explain.symbols"));
    for (const SymbolValue& symbol : report_.symbols)
      out_ += "  " + left_aligned(symbol.symbol, 3) + " = " + left_aligned(count_text(symbol.value), 8) + " " +
              word(symbol.meaning) + "\n";
  }

  [[nodiscard]] bool is_shown(const LineItem& item, std::size_t shown) const {
    if (depth_ == Depth::brief) return shown < kBriefItems;
    return depth_ == Depth::full || *item.at_peak >= peak_ / 1000;
  }

  void items() {
    heading(word("explain.items"));
    std::size_t shown = 0, left = 0;
    std::int64_t sum_left = 0, highest_left = 0;
    for (const LineItem& item : report_.items) {
      if (item.where != Place::device || item.at_peak.value_or(0) <= 0) continue;
      if (is_shown(item, shown)) {
        one(item);
        ++shown;
        continue;
      }
      ++left;
      sum_left += *item.at_peak;
      highest_left = std::max(highest_left, *item.at_peak);
    }
    if (left > 0) lines(say(language_, "explain.others", size_text(highest_left + 1), left, size_text(sum_left)), "");
    out_ += say(language_, "explain.sum", (report_.at_least ? "> " : "") + size_text(peak_)) + "\n";
  }

  void one(const LineItem& item) {
    out_ += say(language_, "explain.item", item_name(item, language_), size_text(*item.at_peak),
                share_text(*item.at_peak, peak_)) +
            "\n";
    if (depth_ == Depth::brief) return;
    lines(item.formula, "    ");
    const std::string numbers = with_numbers(item.formula, report_.symbols);
    if (numbers != item.formula) lines(numbers, "  = ");
    out_ += "  = " + count_text(*item.at_peak) + " B\n";
    if (!item.source.empty()) lines("[" + word(item.source) + "]", "    ");
  }

  void elsewhere() {
    bool first = true;
    for (const LineItem& item : report_.items) {
      if (item.where != Place::device || item.bytes.value_or(0) <= item.at_peak.value_or(0) || item.moments.empty())
        continue;
      if (first) heading(word("explain.elsewhere"));
      first = false;
      const auto highest = std::max_element(item.moments.begin(), item.moments.end(),
                                            [](const auto& a, const auto& b) { return a.second < b.second; });
      out_ +=
          say(language_, "explain.own", item_name(item, language_), size_text(item.bytes), word(highest->first)) + "\n";
    }
  }

  void moments() {
    heading(say(language_, "explain.peak", word(report_.peak_moment)));
    for (const Moment& moment : report_.moments)
      out_ += "  " + say(language_, "explain.highest", word(moment.name), size_text(moment.requested)) + "\n";
    const Moment* second = second_moment(report_);
    if (second == nullptr) return;
    out_ += say(language_, "explain.second", word(second->name), size_text(peak_ - second->requested)) + "\n";
    compare_with(*second);
  }

  // Which items the peak has more of than the other moment ever, and which the other has at some time.
  void compare_with(const Moment& other) {
    std::vector<std::pair<std::int64_t, const LineItem*>> changes;
    for (const LineItem& item : report_.items) {
      if (item.where != Place::device || item.category == "runtime") continue;
      const auto there = std::find_if(item.moments.begin(), item.moments.end(),
                                      [&](const auto& moment) { return moment.first == other.name; });
      const std::int64_t change = item.at_peak.value_or(0) - (there == item.moments.end() ? 0 : there->second);
      if (std::abs(change) > peak_ / 1000) changes.emplace_back(change, &item);
    }
    std::stable_sort(changes.begin(), changes.end(),
                     [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
    for (const bool more : {true, false}) {
      std::string names;
      std::size_t named = 0;
      for (const auto& [change, item] : changes) {
        if ((change > 0) != more || named++ == kNamed) continue;
        if (!names.empty()) names += word("list.comma");
        names += say(language_, "explain.named", item_name(*item, language_), size_text(std::abs(change)));
      }
      if (!names.empty()) lines(say(language_, more ? "explain.more" : "explain.less", word(other.name), names), "");
    }
  }

  void thumb() {
    if (!report_.model.parameters || peak_ == 0) return;
    heading(say(language_, "explain.thumb", size_text(peak_)));
    for (const ThumbRule& rule : thumb_rules()) {
      if (depth_ == Depth::normal && rule.trained != 16 && rule.trained != 8) continue;
      const std::int64_t bytes = thumb_bytes(report_, rule), bits = frozen_bits(report_);
      const std::string frozen = bits == 4 ? "0.5" : std::to_string(bits / 8);
      const bool all = report_.model.trainable_parameters == report_.model.parameters;
      const std::string share = share_text(bytes, peak_);
      lines(all ? say(language_, "explain.thumb.all", rule.trained, size_text(bytes), share, word(rule.key))
                : say(language_, "explain.thumb.row", rule.trained, frozen, size_text(bytes), share, word(rule.key)),
            "  ");
    }
    const std::int64_t states =
        at_peak(report_, "weights") + at_peak(report_, "gradients") + at_peak(report_, "optimizer");
    out_ += say(language_, "explain.thumb.none", size_text(peak_ - states)) + "\n";
  }

  void totals() {
    const Totals& t = report_.totals;
    if (!t.allocated.likely || !t.reserved.likely || !t.device.likely) return;
    heading(word("explain.totals"));
    out_ += "  " + say(language_, "explain.requested", size_text(peak_)) + "\n";
    out_ += "  " +
            say(language_, "explain.allocated", size_text(t.allocated.likely), size_text(*t.allocated.likely - peak_)) +
            "\n";
    out_ += "  " +
            say(language_, "explain.reserved", size_text(t.reserved.likely),
                size_text(*t.reserved.likely - *t.allocated.likely)) +
            "\n";
    out_ += "  " + say(language_, "explain.device", size_text(t.device.likely)) + "\n";
  }

  void verdict() {
    const std::string text = verdict_sentence(report_, language_);
    if (text.empty()) return;
    out_ += "\n";
    lines(text, "");
  }

  const Report& report_;
  Depth depth_;
  Language language_;
  std::int64_t peak_;
  std::string out_;
};

}  // namespace

std::string explain(const Report& report, Depth depth, Language language) {
  return Walk(report, depth, language).text();
}

}  // namespace membill::report
