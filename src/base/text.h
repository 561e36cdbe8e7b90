// Small text helpers of the core. Bytes, not locales: only ASCII letters change case.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace membill {

[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
[[nodiscard]] std::string to_lower(std::string_view text);
// Lower case with '_' as '-': the form in which catalogue names are compared.
[[nodiscard]] std::string to_kebab(std::string_view text);
// Without blanks and tabs at both ends.
[[nodiscard]] std::string_view trim(std::string_view text);
// The parts between `separator`s, trimmed. An empty text has no part; "a,,b" has an empty one.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);
[[nodiscard]] std::string join(const std::vector<std::string>& parts, std::string_view separator);

}  // namespace membill
