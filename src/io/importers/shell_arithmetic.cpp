#include "io/importers/shell_arithmetic.h"

#include <charconv>

#include "base/text.h"

namespace membill::io {
namespace {

using Number = std::optional<std::int64_t>;

constexpr int kDeepest = 32;  // parentheses inside of parentheses

Number apply(char operation, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (operation) {
    case '+': return __builtin_add_overflow(a, b, &result) ? Number() : result;
    case '-': return __builtin_sub_overflow(a, b, &result) ? Number() : result;
    case '*': return __builtin_mul_overflow(a, b, &result) ? Number() : result;
    default: break;
  }
  if (b == 0 || b == -1) return std::nullopt;  // -1: the smallest number has no negative
  return operation == '/' ? a / b : a % b;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Number whole() {
    const Number value = choice(0);
    return next() == '\0' ? value : std::nullopt;
  }

 private:
  char next() {
    text_ = trim(text_);
    return text_.empty() ? '\0' : text_.front();
  }

  // a > b ? c : d
  Number choice(int depth) {
    if (depth > kDeepest) return std::nullopt;
    const Number condition = comparison(depth);
    if (!condition || next() != '?') return condition;
    text_.remove_prefix(1);
    const Number yes = choice(depth + 1);
    if (!yes || next() != ':') return std::nullopt;
    text_.remove_prefix(1);
    const Number no = choice(depth + 1);
    return no ? (*condition != 0 ? yes : no) : std::nullopt;
  }

  Number comparison(int depth) {
    const Number left = sum(depth);
    if (!left || next() == '\0') return left;
    for (const std::string_view sign : {"<=", ">=", "==", "!=", "<", ">"}) {
      if (!text_.starts_with(sign)) continue;
      text_.remove_prefix(sign.size());
      const Number right = sum(depth);
      return right ? Number(compare(sign, *left, *right) ? 1 : 0) : std::nullopt;
    }
    return left;
  }

  static bool compare(std::string_view sign, std::int64_t a, std::int64_t b) {
    if (sign == "==" || sign == "!=") return (a == b) == (sign == "==");
    if (sign == "<=" || sign == ">=") return sign == "<=" ? a <= b : a >= b;
    return sign == "<" ? a < b : a > b;
  }

  Number sum(int depth) {
    Number value = product(depth);
    while (value && (next() == '+' || next() == '-')) value = extended(*value, depth, &Parser::product);
    return value;
  }

  Number product(int depth) {
    Number value = atom(depth);
    while (value && (next() == '*' || next() == '/' || next() == '%')) value = extended(*value, depth, &Parser::atom);
    return value;
  }

  Number extended(std::int64_t left, int depth, Number (Parser::*operand)(int)) {
    const char operation = text_.front();
    text_.remove_prefix(1);
    const Number right = (this->*operand)(depth);
    return right ? apply(operation, left, *right) : std::nullopt;
  }

  Number atom(int depth) {
    if (next() == '(') {
      if (depth == kDeepest) return std::nullopt;
      text_.remove_prefix(1);
      const Number value = choice(depth + 1);
      if (next() != ')') return std::nullopt;
      text_.remove_prefix(1);
      return value;
    }
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
    if (error != std::errc()) return std::nullopt;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return number;
  }

  std::string_view text_;
};

}  // namespace

std::optional<std::int64_t> shell_arithmetic(std::string_view text) { return Parser(text).whole(); }

}  // namespace membill::io
