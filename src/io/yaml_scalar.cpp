#include "io/yaml_scalar.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "io/document.h"

namespace membill::io {
namespace {

// Lower-case, upper-case or capitalised spelling of `word`.
bool spells(std::string_view text, std::string_view word) {
  if (text.size() != word.size() || to_lower(text) != word) return false;
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto count = std::count_if(text.begin(), text.end(), upper);
  return count == 0 || static_cast<std::size_t>(count) == text.size() || (count == 1 && upper(text.front()));
}

std::optional<bool> to_boolean(std::string_view text) {
  for (const std::string_view word : {"true", "yes", "on"}) {
    if (spells(text, word)) return true;
  }
  for (const std::string_view word : {"false", "no", "off"}) {
    if (spells(text, word)) return false;
  }
  return std::nullopt;
}

std::string_view skip_digits(std::string_view text) {
  while (!text.empty() && is_digit(text.front())) text.remove_prefix(1);
  return text;
}

bool is_signed_digits(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  if (text.size() > 1 && text.front() == '0') return false;
  return !text.empty() && skip_digits(text).empty();
}

bool is_real(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  std::string_view rest = skip_digits(text);
  std::size_t digits = text.size() - rest.size();
  if (digits > 1 && text.front() == '0') return false;
  if (!rest.empty() && rest.front() == '.') {
    const std::size_t before = rest.size() - 1;
    rest = skip_digits(rest.substr(1));
    digits += before - rest.size();
  }
  if (digits == 0) return false;
  if (!rest.empty() && (rest.front() == 'e' || rest.front() == 'E')) {
    rest.remove_prefix(1);
    if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) rest.remove_prefix(1);
    return !rest.empty() && skip_digits(rest).empty();
  }
  return rest.empty();
}

bool is_not_finite(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  return text.size() == 4 && (to_lower(text) == ".inf" || to_lower(text) == ".nan");
}

// from_chars needs a digit before the point and one after it.
std::string with_digits_around_point(std::string_view text) {
  std::string result(text);
  const std::size_t point = result.find('.');
  if (point == std::string::npos) return result;
  if (point + 1 == result.size() || !is_digit(result[point + 1])) result.insert(point + 1, "0");
  if (point == 0 || !is_digit(result[point - 1])) result.insert(point, "0");
  return result;
}

}  // namespace

Value plain_scalar(const std::string& text, std::string& why) {
  why.clear();
  if (const std::optional<bool> boolean = to_boolean(text)) return Value::of(*boolean);
  Value value;
  if (is_not_finite(text)) {
    why = "is not a finite number";
  } else if (is_signed_digits(text)) {
    (void)read_integer(text, value, why);
  } else if (is_real(text)) {
    if (read_real(with_digits_around_point(text), value, why)) value = Value::of(value.as_real(), text);
  } else {
    value = Value::of(text);
  }
  return value;
}

}  // namespace membill::io
