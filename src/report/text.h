// Text pieces that every renderer for people shares: sizes, shares, counts, clean and wrapped lines.
#ifndef MEMBILL_REPORT_TEXT_H_
#define MEMBILL_REPORT_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "membill/report.h"
#include "report/messages.h"

namespace membill::report {

// Columns that every text for people may take, however narrow the terminal is.
inline constexpr std::size_t kMinimumWidth = 80;

// Bytes with two decimals in the largest of KiB, MiB, GiB that keeps at least 1 before the point: "12.55 GiB", "-3.20 MiB". Under
// 1 KiB whole bytes: "512 B". Rounded half up, once, in integers.
[[nodiscard]] std::string size_text(std::int64_t bytes);
// As above, "unknown" for none.
[[nodiscard]] std::string size_text(std::optional<std::int64_t> bytes);

// `part` of `total` in percent with one decimal: "82.1%". Empty when total is not positive.
[[nodiscard]] std::string share_text(std::int64_t part, std::int64_t total);

// A count with thousands separators: "6,738,415,616".
[[nodiscard]] std::string count_text(std::int64_t count);

// "4.30 GiB", "4.10 GiB to 4.90 GiB" where low and high differ, or "unknown".
[[nodiscard]] std::string range_text(const Range& range);

// The word of a verdict: "fits", "tight", "does-not-fit", "unknown", "none".
[[nodiscard]] std::string_view answer_word(Answer answer);
// "device", "host" or "nvme".
[[nodiscard]] std::string_view place_word(Place place);

// `text` safe to print: control characters become '?', bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string clean_text(std::string_view text);
// `text` with only what is not UTF-8 replaced, as JSON needs it.
[[nodiscard]] std::string valid_utf8(std::string_view text);

// Columns that clean text takes on a terminal: two for each Chinese, Japanese or Korean character or full-width sign, else one.
[[nodiscard]] std::size_t text_width(std::string_view text);
// Clean text cut to `width` columns; a cut ends in "...". REQUIRES: width >= 4.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t width);
// `text` filled with blanks to `width` columns, on its right or its left side. Longer text is kept whole.
[[nodiscard]] std::string left_aligned(std::string_view text, std::size_t width);
[[nodiscard]] std::string right_aligned(std::string_view text, std::size_t width);
// `text` broken into lines of at most `width` columns: at blanks, and beside wide characters unless a line would begin with a sign that
// closes. A longer word has a line of its own.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t width);

// The value of a resolved plan field as people read it: JSON text without the quotes of a string. Empty when there is no such field.
[[nodiscard]] std::string plan_text(const Report& report, std::string_view key);
// One line on the model: name, family, parameters.
[[nodiscard]] std::string model_line(const Report& report, Language language = Language::en);
// One line on how it is trained: what matters most of the plan.
[[nodiscard]] std::string plan_line(const Report& report, Language language = Language::en);
// One line on the machine; empty when no card was named and the job runs on one.
[[nodiscard]] std::string hardware_line(const Report& report);

}  // namespace membill::report

#endif  // MEMBILL_REPORT_TEXT_H_
