#include "io/importers/shell_reader.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "io/importers/shell_arithmetic.h"
#include "io/importers/shell_substitution.h"
#include "io/importers/shell_text.h"

namespace membill::io {

// One character, quoted text or variable of a word.
void ShellReader::take(std::string& word) {
  if (text_[at_] == '$' && at_ + 1 < text_.size() && (text_[at_ + 1] == '\'' || text_[at_ + 1] == '"')) ++at_;
  const char c = text_[at_];
  if (c == '\'') {
    const std::size_t end = std::min(text_.find('\'', at_ + 1), text_.size());
    word += text_.substr(at_ + 1, end - at_ - 1);
    quoted_ = true;
    at_ = std::min(end + 1, text_.size());
  } else if (c == '"') {
    take_double_quoted(word);
  } else if (const std::size_t length = continuation_length(text_, at_); length > 0) {
    at_ += length;
  } else if (c == '\\') {
    if (at_ + 1 < text_.size()) word += text_[at_ + 1];
    at_ = std::min(at_ + 2, text_.size());
  } else if (c == '`') {
    word += old_substitution();
  } else if (c == '$') {
    const std::string value = variable();
    word += value;
    if (value.find_first_of(" \n\t") != std::string::npos && !value.starts_with("$(")) breaks_ = true;
  } else {
    word += c;
    ++at_;
  }
  if (word.size() > kLongestWord) word.resize(kLongestWord);
}

void ShellReader::take_double_quoted(std::string& word) {
  quoted_ = true;
  ++at_;
  while (at_ < text_.size() && text_[at_] != '"') {
    const char c = text_[at_];
    if (const std::size_t length = continuation_length(text_, at_); length > 0) {
      at_ += length;
    } else if (c == '\\' && at_ + 1 < text_.size()) {
      if (std::string_view("\"\\$`").find(text_[at_ + 1]) == std::string_view::npos) word += c;
      word += text_[at_ + 1];
      at_ += 2;
    } else if (c == '$') {
      word += variable();
    } else if (c == '`') {
      word += old_substitution();
    } else {
      word += c;
      ++at_;
    }
    if (word.size() > kLongestWord) word.resize(kLongestWord);
  }
  if (at_ < text_.size()) ++at_;
}

// The value of what begins with '$' at `at_`; the text itself when it is not known.
std::string ShellReader::variable() {
  const std::size_t start = at_++;
  if (at_ >= text_.size()) return "$";
  if (text_[at_] == '(') return substitution(start);
  if (text_[at_] == '{') return braced(start);
  std::string name;
  if (is_name_start(text_[at_])) {
    while (at_ < text_.size() && is_name_char(text_[at_])) name += text_[at_++];
  } else if (is_digit(text_[at_]) || std::string_view("@*#?$!-").find(text_[at_]) != std::string_view::npos) {
    name = text_[at_++];
  } else {
    return "$";
  }
  if (name == "@" || name == "*") return in_array(name);
  if (name == "#") return std::to_string(scope_.arrays["@"].size());
  return scope_.value_of(name).value_or("$" + name);
}

std::string ShellReader::substitution(std::size_t start) {
  at_ = matching_parenthesis(text_, at_);
  const std::string_view whole = text_.substr(start, at_ - start);
  const bool expression = whole.starts_with("$((") && whole.ends_with("))");
  if (!expression && !whole.starts_with("$(expr ")) return printed(whole, 2, 1);
  const std::string_view inside =
      expression ? whole.substr(3, whole.size() - 5) : whole.substr(7, std::max<std::size_t>(whole.size(), 8) - 8);
  const std::optional<std::int64_t> value = shell_arithmetic(in_expression(inside));
  return value ? std::to_string(*value) : std::string(whole);
}

// What a command substitution prints, without the marks around it; itself when that is not known.
std::string ShellReader::printed(std::string_view whole, std::size_t before, std::size_t after) const {
  const std::size_t length = whole.size() - std::min(whole.size(), before + after);
  const std::string_view inside = whole.substr(std::min(before, whole.size()), length);
  return printed_by(inside, scope_).value_or(std::string(whole));
}

// `command`, at its first mark.
std::string ShellReader::old_substitution() {
  const std::size_t start = at_;
  const std::size_t close = text_.find('`', start + 1);
  at_ = close == std::string_view::npos ? start + 1 : close + 1;
  const std::string_view whole = text_.substr(start, at_ - start);
  if (!whole.starts_with("`expr ")) return printed(whole, 1, 1);
  const std::optional<std::int64_t> value = shell_arithmetic(in_expression(whole.substr(6, whole.size() - 7)));
  return value ? std::to_string(*value) : std::string(whole);
}

// Variables inside of an expression, with or without '$'.
std::string ShellReader::in_expression(std::string_view expression) {
  std::string result;
  for (std::size_t i = 0; i < expression.size() && result.size() < kLongestWord;) {
    if (expression.compare(i, 2, "${") == 0) {
      const std::size_t end = std::min(matching_brace(expression, i + 1) + 1, expression.size());
      result += parameter(expression.substr(i + 2, end - std::min(end, i + 3))).value_or("?");
      i = end;
    } else if (expression[i] == '$' || expression[i] == '\\') {
      ++i;
    } else if (is_name_start(expression[i])) {
      std::string name;
      while (i < expression.size() && is_name_char(expression[i])) name += expression[i++];
      result += scope_.value_of(name).value_or(name);
    } else {
      result += expression[i++];
    }
  }
  return result;
}

std::optional<std::string> ShellReader::parameter(std::string_view body) {
  return scope_.parameter(body, [this](std::string_view text) { return expanded(text); });
}

// A default may hold quotes and variables itself.
std::string ShellReader::expanded(std::string_view text) {
  if (depth_ >= kDeepest) return std::string(text);
  std::string word;
  ShellReader inner(text, std::move(scope_), depth_ + 1);
  while (!inner.done()) inner.take(word);
  quoted_ = quoted_ || inner.quoted_;
  scope_ = std::move(inner.scope_);
  return word;
}

std::string ShellReader::braced(std::size_t start) {
  const std::size_t close = matching_brace(text_, at_);
  const std::string_view body = text_.substr(at_ + 1, close - std::min(close, at_ + 1));
  at_ = std::min(close + 1, text_.size());
  if (body == "@" || body == "*" || body.ends_with("[@]") || body.ends_with("[*]")) {
    if (!body.starts_with('#')) return in_array(body);
  }
  return parameter(body).value_or(std::string(text_.substr(start, at_ - start)));
}

std::string ShellReader::in_array(std::string_view body) {
  if (const std::vector<std::string>* items = scope_.array(body)) {
    pending_.insert(pending_.end(), items->begin(), items->end());
    array_ = true;
  }
  return {};
}

std::string ShellReader::document_text(std::string_view text) {
  if (depth_ >= kDeepest) return std::string(text);
  std::string result;
  ShellReader inner(text, std::move(scope_), depth_ + 1);
  while (!inner.done() && result.size() < kLongestWord) {
    if (text[inner.at_] == '$') {
      result += inner.variable();
    } else {
      result += text[inner.at_++];
    }
  }
  scope_ = std::move(inner.scope_);
  return result;
}

}  // namespace membill::io
