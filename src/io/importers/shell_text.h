// Where pieces of a shell's text end.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace membill::io {

// The place of the line's end at or behind `at`.
[[nodiscard]] std::size_t end_of_line(std::string_view text, std::size_t at);
// Characters of a backslash at `at` that joins two lines; 0: none.
[[nodiscard]] std::size_t continuation_length(std::string_view text, std::size_t at);
// The place of the brace that closes the one at `open`; the end of the text when none does. Quotes and comments are passed over.
[[nodiscard]] std::size_t matching_brace(std::string_view text, std::size_t open);
// Behind the parenthesis that closes the one at `open`; the end of the text when none does.
[[nodiscard]] std::size_t matching_parenthesis(std::string_view text, std::size_t open);
// The words of `text` between blanks, tabs and ends of lines; a command substitution is one.
[[nodiscard]] std::vector<std::string> words_of(std::string_view text);
// Words from number `from` on, with blanks between.
[[nodiscard]] std::string joined(const std::vector<std::string>& words, std::size_t from);

}  // namespace membill::io
