// What Python's operators make of values that are known.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "membill/value.h"

namespace membill::io {

inline constexpr std::size_t kLongestText = 4096;  // and list

// As Python's bool() takes it.
[[nodiscard]] bool is_true(const Value& value);
// A number as it is written; nothing: none.
[[nodiscard]] std::optional<Value> number_value(const std::string& text);
// a + b, a - b, a * b, a // b (op '/') of whole numbers; + of texts and lists. Nothing: not known, or too large.
[[nodiscard]] std::optional<Value> calculated(const Value& a, char op, const Value& b);
// a OP b for ==, !=, <, <=, >, >=, in, is. Nothing: not known.
[[nodiscard]] std::optional<bool> compared(const Value& a, std::string_view op, const Value& b);

}  // namespace membill::io
