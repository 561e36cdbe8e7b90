// What explain and its quiz both ask of a report.
#ifndef MEMBILL_REPORT_EXPLAIN_PARTS_H_
#define MEMBILL_REPORT_EXPLAIN_PARTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "membill/report.h"
#include "report/messages.h"

namespace membill::report {

// The item's name in a language; that of the report where the table has none.
[[nodiscard]] std::string item_name(const LineItem& item, Language language);

// What is explained: the model's line, and the plan's in the words of a job file.
[[nodiscard]] std::string head_lines(const Report& report, Language language);

// The moment that is highest but for the peak's; nullptr: there is no other.
[[nodiscard]] const Moment* second_moment(const Report& report);

// Bytes at the peak of the items of a category, or of one id and what lies below it ("optimizer").
[[nodiscard]] std::int64_t at_peak(const Report& report, std::string_view category_or_id);
// The same with each item's own highest.
[[nodiscard]] std::int64_t highest_of(const Report& report, std::string_view category_or_id);

// "does not fit: 76.50 GiB of 23.64 GiB usable; the highest moment is step, most of it gradients (14.96 GiB)"; empty without a card.
[[nodiscard]] std::string verdict_sentence(const Report& report, Language language);

// The item of the card with most bytes at the peak; none when nothing lives there.
[[nodiscard]] const LineItem* largest_at_peak(const Report& report);

// "AdamW in mixed precision is so many bytes a parameter": a convention of counting.
struct ThumbRule {
  std::int64_t trained = 0;  // bytes for each trained parameter
  std::string_view key;      // of the message that says what is counted
};
[[nodiscard]] std::span<const ThumbRule> thumb_rules();
// Bits of a frozen parameter's storage under the report's plan.
[[nodiscard]] std::int64_t frozen_bits(const Report& report);
// What the rule gives for the report's model.
[[nodiscard]] std::int64_t thumb_bytes(const Report& report, const ThumbRule& rule);

}  // namespace membill::report

#endif  // MEMBILL_REPORT_EXPLAIN_PARTS_H_
