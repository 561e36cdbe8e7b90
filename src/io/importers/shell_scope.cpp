#include "io/importers/shell_scope.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "io/importers/shell_arithmetic.h"
#include "membill/catalog.h"

namespace membill::io {
namespace {

constexpr std::size_t kLongestValue = 1 << 16;    // a variable that doubles itself ends here
constexpr std::size_t kLongestMatched = 1 << 12;  // of a value that patterns are cut from

std::size_t name_length(std::string_view body) {
  std::size_t end = 0;
  while (end < body.size() && is_name_char(body[end])) ++end;
  return end;
}

// ${value%pattern}, %%: without the shortest or longest end that matches.
std::string without_end(const std::string& value, std::string_view pattern, bool longest) {
  for (std::size_t i = 0; i <= value.size(); ++i) {
    const std::size_t keep = longest ? i : value.size() - i;
    if (matches_pattern(std::string_view(value).substr(keep), pattern)) return value.substr(0, keep);
  }
  return value;
}

std::string without_start(const std::string& value, std::string_view pattern, bool longest) {
  for (std::size_t i = 0; i <= value.size(); ++i) {
    const std::size_t cut = longest ? value.size() - i : i;
    if (matches_pattern(std::string_view(value).substr(0, cut), pattern)) return value.substr(cut);
  }
  return value;
}

std::string cut_by(const std::string& value, std::string_view rest, const std::string& pattern) {
  if (value.size() > kLongestMatched || pattern.size() > kLongestMatched) return value;
  const bool longest = rest.size() > 1 && rest[1] == rest[0];
  return rest.front() == '%' ? without_end(value, pattern, longest) : without_start(value, pattern, longest);
}

// ${value/from/to}, //: plain text, not patterns.
std::string replaced(std::string value, std::string_view rest) {
  const bool all = rest.starts_with("//");
  rest.remove_prefix(all ? 2 : 1);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view from = rest.substr(0, slash), to = rest.substr(std::min(slash + 1, rest.size()));
  std::size_t at = from.empty() ? std::string::npos : value.find(from);
  while (at != std::string::npos && value.size() < kLongestValue) {
    value.replace(at, from.size(), to);
    at = all ? value.find(from, at + to.size()) : std::string::npos;
  }
  return value;
}

// ${value:offset:length}.
std::string part_of(const std::string& value, std::string_view rest) {
  const std::size_t colon = std::min(rest.find(':'), rest.size());
  const Value offset = flag_value(trim(rest.substr(0, colon)));
  const Value length = colon < rest.size() ? flag_value(trim(rest.substr(colon + 1))) : Value();
  const auto size = static_cast<std::int64_t>(value.size());
  if (!offset.is_int() || offset.as_int() > size || offset.as_int() < -size) return value;
  const std::int64_t start = offset.as_int() < 0 ? size + offset.as_int() : offset.as_int();
  const std::int64_t count = length.is_int() && length.as_int() >= 0 ? length.as_int() : size;
  return value.substr(static_cast<std::size_t>(start), static_cast<std::size_t>(count));
}

std::string in_case(std::string value, char mark) {
  if (mark == ',') return to_lower(value);
  std::transform(value.begin(), value.end(), value.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return value;
}

// What the operator `rest` makes of a value that is set.
std::optional<std::string> changed(const std::string& value, std::string_view rest, const ShellScope::Expand& expand) {
  switch (rest.front()) {
    case '%':
    case '#': return cut_by(value, rest, expand(rest.substr(rest.size() > 1 && rest[1] == rest[0] ? 2 : 1)));
    case '/': return replaced(value, rest);
    case ':': return part_of(value, rest.substr(1));
    case ',':
    case '^': return in_case(value, rest.front());
    default: return std::nullopt;
  }
}

}  // namespace

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool is_name_char(char c) { return is_name_start(c) || is_digit(c); }

bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0 || !is_name_start(word[0])) return false;
  const std::size_t end = name_length(word);
  return end == equals || (end + 1 == equals && word[end] == '+');
}

bool matches_pattern(std::string_view text, std::string_view pattern) {
  std::size_t t = 0, p = 0, star = std::string_view::npos, kept = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      kept = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++kept;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::optional<std::string> ShellScope::value_of(std::string_view name) const {
  const std::string* found = variables.find(name);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

void ShellScope::assign(const std::string& name, std::string value) {
  if (value.size() > kLongestValue) value.resize(kLongestValue);
  variables.set(name, std::move(value));
}

void ShellScope::assign_word(const std::string& word) {
  const std::size_t equals = word.find('=');
  std::string name = word.substr(0, equals);
  std::string value = word.substr(equals + 1);
  if (name.ends_with('+')) {
    name.pop_back();
    value = value_of(name).value_or("") + value;
  }
  assign(name, std::move(value));
}

const std::vector<std::string>* ShellScope::array(std::string_view body) const {
  if (body == "*") body = "@";
  if (body.ends_with("[@]") || body.ends_with("[*]")) {
    body.remove_suffix(3);
  } else if (body != "@") {
    return nullptr;
  }
  const auto found = arrays.find(body);
  return found == arrays.end() ? nullptr : &found->second;
}

std::optional<std::string> ShellScope::length_of(std::string_view body) const {
  if (const std::vector<std::string>* items = array(body)) return std::to_string(items->size());
  const std::optional<std::string> value = value_of(body);
  return value ? std::optional(std::to_string(value->size())) : std::nullopt;
}

std::string ShellScope::with_values(std::string_view expression) const {
  std::string result;
  for (std::size_t i = 0; i < expression.size() && result.size() < kLongestValue;) {
    const std::size_t length = is_name_start(expression[i]) ? name_length(expression.substr(i)) : 0;
    result += length > 0 ? value_of(expression.substr(i, length)).value_or("?") : std::string(1, expression[i]);
    i += std::max(length, std::size_t{1});
  }
  return result;
}

// An index is a number, a variable, an expression of them, or a key; a negative one counts from the end.
std::optional<std::string> ShellScope::item_of(const std::string& name, const std::string& index) const {
  const auto items = arrays.find(name);
  if (items == arrays.end()) return std::nullopt;
  for (const std::string& item : items->second) {  // of declare -A: [key]=value
    if (item.starts_with("[" + index + "]=")) return item.substr(index.size() + 3);
  }
  const std::optional<std::int64_t> number = shell_arithmetic(with_values(index));
  if (!number) return std::nullopt;
  const auto size = static_cast<std::int64_t>(items->second.size());
  const std::int64_t place = *number < 0 ? size + *number : *number;
  return place >= 0 && place < size ? items->second[static_cast<std::size_t>(place)] : std::string();
}

std::optional<std::string> ShellScope::parameter(std::string_view body, const Expand& expand) {
  if (body.starts_with('#')) return length_of(body.substr(1));
  const std::string name(body.substr(0, name_length(body)));
  const std::string_view rest = body.substr(name.size());
  if (rest.starts_with('['))
    return item_of(name, expand(rest.substr(1, std::max(rest.rfind(']'), std::size_t{1}) - 1)));
  std::optional<std::string> value = value_of(name);
  if (rest.empty()) return value;
  const bool colon =
      rest.front() == ':' && rest.size() > 1 && std::string_view("-=+?").find(rest[1]) != std::string_view::npos;
  const std::string_view mark = rest.substr(colon ? 1 : 0);
  const bool is_set = value && (!colon || !value->empty());
  switch (mark.front()) {
    case '-': return is_set ? value : expand(mark.substr(1));
    case '+': return is_set ? expand(mark.substr(1)) : std::string();
    case '?': return value;
    case '=':
      if (!is_set) assign(name, expand(mark.substr(1)));
      return value_of(name);
    default: return value ? changed(*value, rest, expand) : std::nullopt;
  }
}

}  // namespace membill::io
