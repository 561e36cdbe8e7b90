#include "membill/units.h"

#include <array>

#include "base/text.h"

namespace membill {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::array<Unit, 9> kUnits{{
    {"b", 1},
    {"kb", 1'000},
    {"mb", 1'000'000},
    {"gb", 1'000'000'000},
    {"tb", 1'000'000'000'000},
    {"kib", 1LL << 10},
    {"mib", 1LL << 20},
    {"gib", 1LL << 30},
    {"tib", 1LL << 40},
}};

// A decimal number as written: 12.34e5 is whole "12", fraction "34", exponent 5.
struct Decimal {
  std::string_view whole;
  std::string_view fraction;
  std::string_view rest;  // what follows the digits
};

std::string_view take_digits(std::string_view& text) {
  std::size_t n = 0;
  while (n < text.size() && is_digit(text[n])) ++n;
  const std::string_view digits = text.substr(0, n);
  text.remove_prefix(n);
  return digits;
}

// Splits digits[.digits] off the front of `text`. False, with `why`, when there is no such number.
bool take_decimal(std::string_view text, Decimal& result, std::string& why) {
  if (!text.empty() && text.front() == '-') return why = "must not be negative", false;
  result.whole = take_digits(text);
  if (result.whole.empty()) return why = "must begin with a digit", false;
  if (result.whole.size() > 1 && result.whole.front() == '0') return why = "must not begin with 0", false;
  result.fraction = {};
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    result.fraction = take_digits(text);
    if (result.fraction.empty()) return why = "needs a digit after the decimal point", false;
  }
  result.rest = text;
  return true;
}

bool digits_to_int(std::string_view digits, std::int64_t& result) {
  std::int64_t n = 0;
  for (const char c : digits) {
    if (__builtin_mul_overflow(n, std::int64_t{10}, &n) || __builtin_add_overflow(n, std::int64_t{c - '0'}, &n))
      return false;
  }
  result = n;
  return true;
}

// The whole part of 0.`fraction` x `unit`. Exact for any number of digits: flooring after each digit equals flooring once.
std::int64_t floor_of_fraction(std::string_view fraction, std::int64_t unit) {
  std::int64_t carry = 0;
  for (std::size_t i = fraction.size(); i > 0; --i) carry = ((fraction[i - 1] - '0') * unit + carry) / 10;
  return carry;
}

const Unit* find_unit(std::string_view name) {
  const std::string lower = to_lower(name);
  for (const Unit& unit : kUnits) {
    if (unit.name == lower) return &unit;
  }
  return nullptr;
}

std::string unit_problem(std::string_view name) {
  if (name.empty()) return "needs a unit such as GiB or GB";
  if (name.size() == 1 && std::string_view("KMGTkmgt").find(name.front()) != std::string_view::npos) {
    const std::string letter(1, static_cast<char>(name.front() & ~0x20));
    return "needs a unit without doubt: " + letter + "iB or " + letter + "B, not " + letter + " alone";
  }
  return "has an unknown unit; B, KB, MB, GB, TB, KiB, MiB, GiB and TiB are known";
}

// The power of ten that `suffix` of a number of parameters stands for. False, with `why`, when it is none.
bool read_scale(std::string_view suffix, std::int64_t& power, std::string& why) {
  power = 0;
  if (suffix.empty()) return true;
  if (suffix.size() == 1) {
    constexpr std::string_view kLetters = "KMBT";
    const std::size_t at = kLetters.find(static_cast<char>(suffix.front() & ~0x20));
    if (at != std::string_view::npos) return power = 3 * (static_cast<std::int64_t>(at) + 1), true;
  }
  if (suffix.front() == 'e' || suffix.front() == 'E') {
    suffix.remove_prefix(1);
    if (!suffix.empty() && suffix.front() == '+') suffix.remove_prefix(1);
    const std::string_view digits = take_digits(suffix);
    if (!digits.empty() && suffix.empty()) {
      if (digits_to_int(digits, power) && power <= 99) return true;
      return why = "is too large", false;
    }
  }
  return why = "needs a number of parameters such as 7000000000, 7e9 or 7B", false;
}

}  // namespace

std::string_view dtype_name(DType type) {
  switch (type) {
    case DType::fp32: return "fp32";
    case DType::bf16: return "bf16";
    case DType::fp16: return "fp16";
    case DType::fp8: return "fp8";
    case DType::int64: return "int64";
    case DType::int32: return "int32";
    case DType::int8: return "int8";
    case DType::uint8: return "uint8";
    case DType::boolean: return "bool";
  }
  return "";
}

bool parse_bytes(std::string_view text, Bytes& result, std::string& why) {
  Decimal number;
  if (!take_decimal(text, number, why)) return false;
  std::string_view name = number.rest;
  while (!name.empty() && (name.front() == ' ' || name.front() == '\t')) name.remove_prefix(1);
  if (text == "0") return result = Bytes(0), true;
  const Unit* unit = find_unit(name);
  if (unit == nullptr) return why = unit_problem(name), false;
  std::int64_t whole = 0;
  std::int64_t bytes = 0;
  if (!digits_to_int(number.whole, whole) || __builtin_mul_overflow(whole, unit->bytes, &bytes) ||
      __builtin_add_overflow(bytes, floor_of_fraction(number.fraction, unit->bytes), &bytes)) {
    return why = "is too large", false;
  }
  result = Bytes(bytes);
  return true;
}

bool parse_count(std::string_view text, std::int64_t& result, std::string& why) {
  std::string_view rest = text;
  if (!text.empty() && text.front() == '-' && text.size() > 1 && is_digit(text[1]))
    return why = "must not be negative", false;
  const std::string_view digits = take_digits(rest);
  if (digits.empty() || !rest.empty()) return why = "needs a whole number in plain digits", false;
  if (digits.size() > 1 && digits.front() == '0') return why = "must not begin with 0", false;
  if (!digits_to_int(digits, result)) return why = "is too large", false;
  return true;
}

bool parse_parameters(std::string_view text, std::int64_t& result, std::string& why) {
  Decimal number;
  if (!take_decimal(text, number, why)) return false;
  std::int64_t power = 0;
  if (!read_scale(number.rest, power, why)) return false;
  std::string_view fraction = number.fraction;
  while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
  if (static_cast<std::int64_t>(fraction.size()) > power) return why = "needs a whole number of parameters", false;
  std::string digits(number.whole);
  digits += fraction;
  digits.append(static_cast<std::size_t>(power) - fraction.size(), '0');
  if (!digits_to_int(digits, result)) return why = "is too large", false;
  return true;
}

}  // namespace membill
