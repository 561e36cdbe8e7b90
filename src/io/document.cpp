#include "io/document.h"

#include <charconv>
#include <cstddef>

namespace membill::io {
namespace {

constexpr std::size_t kFew = 24;

}  // namespace

int KeyIndex::add(const std::string& key, int line) {
  if (many_.empty()) {
    for (const auto& [known, first] : few_) {
      if (known == key) return first;
    }
    few_.emplace_back(key, line);
    if (few_.size() > kFew) many_.insert(few_.begin(), few_.end());
    return 0;
  }
  const auto [place, is_new] = many_.emplace(key, line);
  return is_new ? 0 : place->second;
}

bool read_integer(std::string_view written, Value& result, std::string& why) {
  std::string_view digits = written;
  if (!digits.empty() && digits.front() == '+') digits.remove_prefix(1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return why = "does not fit 64 bits", false;
  result = Value::of(number);
  return true;
}

bool read_real(std::string_view written, Value& result, std::string& why) {
  std::string_view digits = written;
  if (!digits.empty() && digits.front() == '+') digits.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error == std::errc::result_out_of_range) {
    const bool tiny =
        digits.find('-', 1) != std::string_view::npos || digits.find('.') == (digits.front() == '-' ? 2U : 1U);
    if (!tiny) return why = "is too large for a number", false;
    number = 0;
  }
  result = Value::of(number, std::string(written));
  return true;
}

}  // namespace membill::io
