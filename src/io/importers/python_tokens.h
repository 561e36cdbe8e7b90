// Python programs as words: names, numbers, texts, operators and ends of lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace membill::io {

enum class PythonKind : std::uint8_t { name, number, text, computed_text, op, line_end };

struct PythonToken {
  PythonKind kind = PythonKind::line_end;
  std::string text;  // of a text what stands between the quotes, escapes resolved; computed_text: an f-string
  std::size_t match =
      0;           // of an opening bracket: the index of its closing one, or the number of tokens where that is missing
  int line = 0;    // from 1
  int indent = 0;  // blanks before the first word of its line, or of the line on which its brackets open
};

// The words of `text`. Comments are left out, and so are lines of a notebook that are no Python (!pip, %magic); line ends inside brackets
// are no tokens. Never fails: what is no Python yields some operators.
[[nodiscard]] std::vector<PythonToken> python_tokens(std::string_view text);

}  // namespace membill::io
