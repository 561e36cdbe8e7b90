#include "report/formula.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "membill/units.h"

namespace membill::report {
namespace {

constexpr std::string_view kTimes = "·";

// What can be no part of a name: blanks, signs, brackets, and the dot and brackets of formulas.
std::size_t separator_at(std::string_view text, std::size_t at) {
  for (const std::string_view sign : {kTimes, std::string_view("⌈"), std::string_view("⌉")})
    if (text.substr(at, sign.size()) == sign) return sign.size();
  return std::string_view(" +-/()").find(text[at]) != std::string_view::npos ? 1 : 0;
}

const SymbolValue* find_symbol(std::string_view name, const std::vector<SymbolValue>& symbols) {
  const auto found =
      std::find_if(symbols.begin(), symbols.end(), [&](const SymbolValue& symbol) { return symbol.symbol == name; });
  return found == symbols.end() ? nullptr : &*found;
}

std::optional<std::int64_t> value_of(std::string_view factor, const std::vector<SymbolValue>& symbols) {
  std::int64_t number = 0;
  const char* const end = factor.data() + factor.size();
  if (const auto read = std::from_chars(factor.data(), end, number); read.ec == std::errc() && read.ptr == end)
    return number;
  const SymbolValue* symbol = find_symbol(factor, symbols);
  return symbol == nullptr ? std::nullopt : std::optional(symbol->value);
}

// The value of one term when a factor is among `letters`; 0 otherwise.
std::int64_t term_with(std::string_view term, const std::vector<SymbolValue>& symbols,
                       const std::vector<std::string_view>& letters) {
  std::int64_t product = 1;
  bool has_letter = false;
  for (std::size_t at = 0; at <= term.size();) {
    const std::size_t end = std::min(term.find(kTimes, at), term.size());
    const std::string_view factor = term.substr(at, end - at);
    const std::optional<std::int64_t> value = value_of(factor, symbols);
    if (!value) return 0;
    product = checked_mul(product, *value);
    has_letter = has_letter || std::find(letters.begin(), letters.end(), factor) != letters.end();
    at = end + kTimes.size();
  }
  return has_letter ? product : 0;
}

}  // namespace

std::string with_numbers(std::string_view formula, const std::vector<SymbolValue>& symbols) {
  std::string out;
  for (std::size_t at = 0; at < formula.size();) {
    if (const std::size_t width = separator_at(formula, at); width > 0) {
      out += formula.substr(at, width);
      at += width;
      continue;
    }
    std::size_t end = at;
    while (end < formula.size() && separator_at(formula, end) == 0) ++end;
    const std::string_view name = formula.substr(at, end - at);
    const SymbolValue* symbol = find_symbol(name, symbols);
    out += symbol == nullptr ? std::string(name) : std::to_string(symbol->value);
    at = end;
  }
  return out;
}

std::int64_t part_with(std::string_view formula, const std::vector<SymbolValue>& symbols,
                       const std::vector<std::string_view>& letters) {
  std::int64_t sum = 0;
  std::int64_t sign = 1;
  for (std::size_t at = 0; at < formula.size();) {
    const std::size_t plus = formula.find(" + ", at), minus = formula.find(" - ", at);
    const std::size_t end = std::min({plus, minus, formula.size()});
    sum = checked_add(sum, sign * term_with(formula.substr(at, end - at), symbols, letters));
    sign = end == minus ? -1 : 1;
    at = end + 3;
  }
  return sum;
}

}  // namespace membill::report
