#include "report/explain_parts.h"

#include <array>

#include "membill/catalog.h"
#include "membill/units.h"
#include "report/text.h"

namespace membill::report {
namespace {

bool belongs(const LineItem& item, std::string_view name) {
  return item.where == Place::device &&
         (item.category == name || item.id == name || item.id.rfind(std::string(name) + ".", 0) == 0);
}

}  // namespace

std::string item_name(const LineItem& item, Language language) {
  const std::string_view text = message(item.id, language);
  return text == item.id ? clean_text(item.label) : std::string(text);
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

}  // namespace membill::report
