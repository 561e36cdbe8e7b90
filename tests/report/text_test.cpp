#include "report/text.h"

#include <limits>

#include "support/catch.h"

namespace {

using namespace membill::report;

constexpr std::int64_t kKiB = 1 << 10;
constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kGiB = 1 << 30;

TEST_CASE("sizes are rounded once, half up, in the unit that keeps one digit before the point") {
  CHECK(size_text(std::int64_t{0}) == "0 B");
  CHECK(size_text(std::int64_t{1}) == "1 B");
  CHECK(size_text(kKiB - 1) == "1023 B");
  CHECK(size_text(kKiB) == "1.00 KiB");
  CHECK(size_text(kMiB - 1) == "1.00 MiB");
  CHECK(size_text(kMiB - 8 * kKiB) == "1016.00 KiB");
  CHECK(size_text(kGiB - kMiB) == "1023.00 MiB");
  CHECK(size_text(kGiB - 6 * kKiB) == "1023.99 MiB");
  CHECK(size_text(kGiB - 5 * kKiB) == "1.00 GiB");
  CHECK(size_text(kGiB - 1) == "1.00 GiB");
  CHECK(size_text(kGiB + kGiB / 200) == "1.00 GiB");
  CHECK(size_text(kGiB + kGiB / 200 + 1) == "1.01 GiB");
  CHECK(size_text(80 * kGiB) == "80.00 GiB");
  CHECK(size_text(-3 * kGiB - kGiB / 5) == "-3.20 GiB");
  CHECK(size_text(std::numeric_limits<std::int64_t>::max()) == "8589934592.00 GiB");
  CHECK(size_text(std::numeric_limits<std::int64_t>::min()) == "-8589934592.00 GiB");
  CHECK(size_text(std::optional<std::int64_t>()) == "unknown");
}

TEST_CASE("counts have their thousands separated") {
  CHECK(count_text(0) == "0");
  CHECK(count_text(999) == "999");
  CHECK(count_text(1000) == "1,000");
  CHECK(count_text(6'738'415'616) == "6,738,415,616");
  CHECK(count_text(-1234) == "-1,234");
}

TEST_CASE("a range is one figure when both its ends agree") {
  CHECK(range_text(membill::Range::exact(kGiB)) == "1.00 GiB");
  CHECK(range_text({kGiB, kGiB, 2 * kGiB}) == "1.00 GiB to 2.00 GiB");
  CHECK(range_text({}) == "unknown");
}

TEST_CASE("text for a terminal holds nothing that a terminal obeys") {
  CHECK(clean_text("a\x1b[31mb\tc\x7f") == "a?[31mb?c?");
  CHECK(clean_text("\xC2\x9B") == "?");
  CHECK(clean_text("\xFF") == "\xEF\xBF\xBD");
  CHECK(clean_text("\xC0\xAF") == "\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(clean_text("\xED\xA0\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(clean_text("\xE6\xA8\xA1\xE5\x9E\x8B") == "\xE6\xA8\xA1\xE5\x9E\x8B");
  CHECK(valid_utf8("a\tb\xFF") == "a\tb\xEF\xBF\xBD");
}

TEST_CASE("a cut keeps whole characters") {
  CHECK(shortened("abcdefgh", 8) == "abcdefgh");
  CHECK(shortened("abcdefghi", 8) == "abcde...");
  CHECK(shortened("模模模", 6) == "模模模");
  CHECK(shortened("模模模", 5) == "模...");
  CHECK(shortened("ééé", 4) == "ééé");
}

TEST_CASE("lines are broken at blanks and long words stand alone") {
  CHECK(wrapped("aa bb cc", 5) == std::vector<std::string>{"aa bb", "cc"});
  CHECK(wrapped("aa  bb", 80) == std::vector<std::string>{"aa bb"});
  CHECK(wrapped("aa abcdefgh b", 4) == std::vector<std::string>{"aa", "abcdefgh", "b"});
  CHECK(wrapped("", 10).empty());
}

TEST_CASE("wide characters take two columns and lines are broken beside them, but not before a closing sign") {
  CHECK(text_width("a模b") == 4);
  CHECK(wrapped("显存GiB\uFF0C不够", 9) == std::vector<std::string>{"显存GiB\uFF0C", "不够"});
  CHECK(wrapped("显存GiB\uFF0C不够", 8) == std::vector<std::string>{"显存", "GiB\uFF0C不", "够"});
  CHECK(wrapped("一二\uFF081 GiB\uFF09", 6) == std::vector<std::string>{"一二", "\uFF081", "GiB\uFF09"});
  CHECK(wrapped("一二三四", 5) == std::vector<std::string>{"一二", "三四"});
}

}  // namespace
