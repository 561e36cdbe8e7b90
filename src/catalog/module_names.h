// Names of modules and parameters as PEFT and LLaMA-Factory match them: dotted endings, and regular expressions.
#pragma once

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <string_view>

namespace membill {

// The longest regular expression that is compiled, in characters: std::regex recurses over it.
constexpr std::size_t kLongestPattern = 1000;

// True when `target` is `name` or the last of its dotted parts.
[[nodiscard]] bool ends_with_name(std::string_view name, std::string_view target);
[[nodiscard]] std::string_view last_part(std::string_view name);

// Whether a name has a character that no module name has: it is a regular expression.
[[nodiscard]] bool is_pattern(std::string_view name);
// Nothing when it is no regular expression or longer than kLongestPattern.
[[nodiscard]] std::optional<std::regex> compile_pattern(const std::string& pattern);

// A name of the census in one layer of its stack: "model.layers.*.mlp" becomes "model.layers.7.mlp".
[[nodiscard]] std::string with_layer(std::string name, std::int64_t layer);

}  // namespace membill
