// The rows of a bill in the order people read them.
#ifndef MEMBILL_REPORT_ROWS_H_
#define MEMBILL_REPORT_ROWS_H_

#include <string>
#include <string_view>
#include <vector>

#include "membill/report.h"

namespace membill::report {

// A bill told apart by where bytes lie and whether the sum of the peak counts them.
struct Rows {
  std::vector<const LineItem*>
      peak;  // device items of the peak's sum: by at_peak, then by their own highest; unknown ones first
  std::vector<const LineItem*>
      beside;                         // device items outside of that sum: context, communicators, the allocator's slack
  std::vector<const LineItem*> host;  // host and NVMe items, by size
};

// Leaves out items that are zero at the peak and at all other times.
[[nodiscard]] Rows bill_rows(const Report& report);

// A total with its name and what it can be compared to.
struct TotalRow {
  std::string_view name;  // "requested"
  std::string_view note;  // "the rows above"
  const Range* range;
};

// requested, allocated, reserved, device; host and nvme where they are known and above zero.
[[nodiscard]] std::vector<TotalRow> total_rows(const Report& report);

// Whether some item is larger at another time than at the peak, or is ranged: then a column shows each item's own highest.
[[nodiscard]] bool needs_highest(const std::vector<const LineItem*>& rows);
// An item's own highest as text, empty when it equals its share of the peak.
[[nodiscard]] std::string highest_text(const LineItem& item);

// The deciding moment and rank: "backward on rank 0".
[[nodiscard]] std::string peak_text(const Report& report);
// What a rank leaves of its card; none when no card was named.
[[nodiscard]] std::optional<std::int64_t> headroom_of(const Report& report, const RankBill& rank);
// Why the verdict is what it is: the report's sentence, or how to get a verdict.
[[nodiscard]] std::string because_text(const Report& report);

}  // namespace membill::report

#endif  // MEMBILL_REPORT_ROWS_H_
