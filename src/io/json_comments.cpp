#include "io/json_comments.h"

#include <algorithm>

namespace membill::io {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// Behind the quoted text that begins at `at`.
std::size_t end_of_quoted(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

// Behind the comment that begins at `at`; `at` when none does.
std::size_t end_of_comment(std::string_view text, std::size_t at) {
  if (text[at] == '#' || text.compare(at, 2, "//") == 0) return std::min(text.find('\n', at), text.size());
  if (text.compare(at, 2, "/*") != 0) return at;
  const std::size_t end = text.find("*/", at + 2);
  return end == std::string_view::npos ? text.size() : end + 2;
}

void blank(std::string& text, std::size_t from, std::size_t to) {
  std::replace_if(
      text.begin() + static_cast<std::ptrdiff_t>(from), text.begin() + static_cast<std::ptrdiff_t>(to),
      [](char c) { return c != '\n' && c != '\r'; }, ' ');
}

// The first sign at or behind `at` that is no blank and in no comment; the text's end when none is.
std::size_t first_sign(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const std::size_t end = end_of_comment(text, at);
    if (end == at && kBlanks.find(text[at]) == std::string_view::npos) return at;
    at = std::max(end, at + 1);
  }
  return at;
}

}  // namespace

bool is_json_with_comments(std::string_view text) {
  const std::size_t start = text.find_first_not_of(kBlanks), brace = first_sign(text, 0);
  if (brace >= text.size() || text[brace] != '{') return false;
  const std::size_t key = first_sign(text, brace + 1);
  return text[start] != '#' || (key < text.size() && text[key] == '"');
}

std::string without_json_comments(std::string_view text) {
  std::string result(text);
  std::size_t comma = std::string::npos;  // the last one, when only blanks came since
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (const std::size_t end = end_of_comment(text, at); end > at) {
      blank(result, at, end);
      at = end;
      continue;
    }
    if ((c == '}' || c == ']') && comma != std::string::npos) result[comma] = ' ';
    if (c == ',') {
      comma = at;
    } else if (kBlanks.find(c) == std::string_view::npos) {
      comma = std::string::npos;
    }
    at = c == '"' ? end_of_quoted(text, at) : at + 1;
  }
  return result;
}

}  // namespace membill::io
