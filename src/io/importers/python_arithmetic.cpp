#include "io/importers/python_arithmetic.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "io/value_writer.h"
#include "membill/units.h"

namespace membill::io {

bool is_true(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::null: return false;
    case Value::Kind::boolean: return value.as_bool();
    case Value::Kind::integer: return value.as_int() != 0;
    case Value::Kind::real: return value.as_real() < 0 || value.as_real() > 0;
    case Value::Kind::string: return !value.as_string().empty();
    case Value::Kind::list: return !value.items().empty();
    case Value::Kind::map: return !value.entries().empty();
  }
  return false;
}

std::optional<Value> number_value(const std::string& text) {
  std::int64_t whole = 0;
  const char* end = text.data() + text.size();
  if (const auto [rest, error] = std::from_chars(text.data(), end, whole); error == std::errc() && rest == end)
    return Value::of(whole);
  double real = 0;
  if (const auto [rest, error] = std::from_chars(text.data(), end, real); error == std::errc() && rest == end)
    return Value::of(real, text);
  return std::nullopt;
}

std::optional<Value> calculated(const Value& a, char op, const Value& b) {
  if (op == '+' && a.is_string() && b.is_string()) {
    if (a.as_string().size() + b.as_string().size() > kLongestText) return std::nullopt;
    return Value::of(a.as_string() + b.as_string());
  }
  if (op == '+' && a.is_list() && b.is_list()) {
    if (a.items().size() + b.items().size() > kLongestText) return std::nullopt;
    std::vector<Value> items = a.items();
    items.insert(items.end(), b.items().begin(), b.items().end());
    return Value::make_list(std::move(items));
  }
  if (!a.is_int() || !b.is_int()) return std::nullopt;
  try {
    if (op == '+') return Value::of(checked_add(a.as_int(), b.as_int()));
    if (op == '-') return Value::of(checked_sub(a.as_int(), b.as_int()));
    if (op == '*') return Value::of(checked_mul(a.as_int(), b.as_int()));
    if (op == '/' && a.as_int() >= 0 && b.as_int() > 0) return Value::of(a.as_int() / b.as_int());
  } catch (const OverflowError&) {
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<bool> compared(const Value& a, std::string_view op, const Value& b) {
  const bool numbers = a.is_number() && b.is_number();
  const bool same = numbers ? a.as_real() <= b.as_real() && a.as_real() >= b.as_real()
                            : a.kind() == b.kind() && write_json_line(a) == write_json_line(b);
  if (op == "==" || op == "is") return same;
  if (op == "!=") return !same;
  if (op == "in" && a.is_string() && b.is_string()) return b.as_string().find(a.as_string()) != std::string::npos;
  if (op == "in" && b.is_list())
    return std::any_of(b.items().begin(), b.items().end(),
                       [&](const Value& item) { return compared(a, "==", item) == true; });
  if (op == "in" && b.is_map() && a.is_string()) return b.find(a.as_string()) != nullptr;
  if (!numbers) return std::nullopt;
  if (op == "<") return a.as_real() < b.as_real();
  if (op == "<=") return a.as_real() <= b.as_real();
  if (op == ">") return a.as_real() > b.as_real();
  if (op == ">=") return a.as_real() >= b.as_real();
  return std::nullopt;
}

}  // namespace membill::io
