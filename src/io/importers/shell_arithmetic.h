// Whole-number expressions of a shell: $(( 64 / (8 * 2) )), $(expr 16 / 2).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace membill::io {

// The value of numbers under + - * / % and parentheses, with the usual precedence. Nothing for anything else, for a division by zero, and
// past 64 bits.
[[nodiscard]] std::optional<std::int64_t> shell_arithmetic(std::string_view text);

}  // namespace membill::io
