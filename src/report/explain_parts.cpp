#include "report/explain_parts.h"

#include <array>

#include "membill/catalog.h"
#include "membill/units.h"
#include "report/text.h"

namespace membill::report {
namespace {

constexpr std::size_t kColumns = 80;

bool belongs(const LineItem& item, std::string_view name) {
  return item.where == Place::device &&
         (item.category == name || item.id == name || item.id.rfind(std::string(name) + ".", 0) == 0);
}

}  // namespace

std::string item_name(const LineItem& item, Language language) {
  const std::string_view text = message(item.id, language);
  if (text != item.id) return std::string(text);
  return item.category == "optimizer" ? std::string(message("optimizer", language)) : clean_text(item.label);
}

std::string head_lines(const Report& report, Language language) {
  std::string text;
  for (const std::string& whole : {model_line(report, language), plan_line(report, language)})
    for (const std::string& part : wrapped(whole, kColumns)) text += part + "\n";
  return text;
}

const Moment* second_moment(const Report& report) {
  const Moment* second = nullptr;
  for (const Moment& moment : report.moments)
    if (moment.name != report.peak_moment && (second == nullptr || moment.requested > second->requested))
      second = &moment;
  return second;
}

std::int64_t at_peak(const Report& report, std::string_view category_or_id) {
  std::int64_t sum = 0;
  for (const LineItem& item : report.items)
    if (belongs(item, category_or_id)) sum = checked_add(sum, item.at_peak.value_or(0));
  return sum;
}

std::int64_t highest_of(const Report& report, std::string_view category_or_id) {
  std::int64_t sum = 0;
  for (const LineItem& item : report.items)
    if (belongs(item, category_or_id)) sum = checked_add(sum, item.bytes.value_or(0));
  return sum;
}

std::span<const ThumbRule> thumb_rules() {
  static constexpr std::array<ThumbRule, 6> kRules{
      {{16, "thumb.16"}, {8, "thumb.8"}, {10, "thumb.10"}, {12, "thumb.12"}, {18, "thumb.18"}, {20, "thumb.20"}}};
  return kRules;
}

std::int64_t frozen_bits(const Report& report) {
  const WeightFormatRow* row = find_weight_format(plan_text(report, "weights"));
  return row == nullptr ? 16 : row->bits;
}

std::int64_t thumb_bytes(const Report& report, const ThumbRule& rule) {
  const std::int64_t trained = report.model.trainable_parameters.value_or(0);
  const std::int64_t frozen = std::max<std::int64_t>(0, report.model.parameters.value_or(0) - trained);
  return checked_add(checked_mul(rule.trained, trained), checked_mul(frozen, frozen_bits(report)) / 8);
}

const LineItem* largest_at_peak(const Report& report) {
  const LineItem* largest = nullptr;
  for (const LineItem& item : report.items)
    if (item.where == Place::device && item.at_peak.value_or(0) > (largest == nullptr ? 0 : *largest->at_peak))
      largest = &item;
  return largest;
}

std::string verdict_sentence(const Report& report, Language language) {
  const Verdict& verdict = report.verdict;
  if (!verdict.capacity || !report.totals.device.likely) return {};
  std::string text =
      say(language, report.at_least ? "verdict.at_least" : "verdict", message(answer_word(verdict.answer), language),
          size_text(report.totals.device.likely), size_text(verdict.capacity));
  // Of this the report has words only.
  if (verdict.because.find(message("verdict.building", Language::en)) != std::string::npos)
    text += message("verdict.building", language);
  const LineItem* largest = largest_at_peak(report);
  if (largest != nullptr)
    text += say(language, "verdict.peak", message(report.peak_moment, language), item_name(*largest, language),
                size_text(*largest->at_peak));
  if (verdict.answer == Answer::tight) text += message("verdict.tight", language);
  if (verdict.answer == Answer::unknown) text += message("verdict.unknown", language);
  const ReportHardware& machine = report.hardware;
  const std::int64_t needed = checked_mul(report.totals.host.likely.value_or(0), machine.count / machine.nodes);
  if (machine.host_bytes && needed > *machine.host_bytes)
    text += say(language, "verdict.host", size_text(needed), size_text(*machine.host_bytes));
  return text;
}

}  // namespace membill::report
