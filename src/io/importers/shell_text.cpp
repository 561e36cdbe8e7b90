#include "io/importers/shell_text.h"

#include <algorithm>
#include <utility>

namespace membill::io {

std::size_t end_of_line(std::string_view text, std::size_t at) { return std::min(text.find('\n', at), text.size()); }

std::size_t continuation_length(std::string_view text, std::size_t at) {
  if (text.compare(at, 2, "\\\n") == 0) return 2;
  return text.compare(at, 3, "\\\r\n") == 0 ? 3 : 0;
}

std::size_t matching_brace(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    const char c = text[i];
    const bool starts_word = i == 0 || std::string_view(" \t\n;").find(text[i - 1]) != std::string_view::npos;
    if (c == '\\') {
      ++i;
    } else if (c == '\'' || c == '"') {
      i = std::min(text.find(c, i + 1), text.size());
    } else if (c == '#' && starts_word) {
      i = end_of_line(text, i);
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i;
    }
  }
  return text.size();
}

std::size_t matching_parenthesis(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return i + 1;
  }
  return text.size();
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (text.compare(i, 2, "$(") == 0) {
      const std::size_t end = matching_parenthesis(text, i + 1);
      word += text.substr(i, end - i);
      i = end - 1;
    } else if (!blank) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

std::string joined(const std::vector<std::string>& words, std::size_t from) {
  std::string text;
  for (std::size_t i = from; i < words.size(); ++i) text += (i > from ? " " : "") + words[i];
  return text;
}

}  // namespace membill::io
