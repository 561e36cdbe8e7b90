#include "io/importers/python_tokens.h"

#include <algorithm>

#include "base/text.h"

namespace membill::io {
namespace {

bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool in_name(char c) { return begins_name(c) || is_digit(c); }

class PythonScanner {
 public:
  explicit PythonScanner(std::string_view text) : text_(text) {}

  std::vector<PythonToken> run() {
    while (at_ < text_.size()) step();
    add(PythonKind::line_end, "");
    match_brackets();
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void add(PythonKind kind, std::string text) {
    if (starts_line()) indent_ = static_cast<int>(std::min<std::size_t>(from_ - line_from_, 1 << 20));
    tokens_.push_back({kind, std::move(text), 0, line_, indent_});
  }

  void step() {
    const char c = peek();
    from_ = at_;
    if (c == '\n') return end_line();
    if (c == '\\' && peek(1) == '\n') {
      at_ += 2;
      ++line_;
      line_from_ = at_;
      return;
    }
    if (c == '#' || (starts_line() && (c == '!' || c == '%'))) return skip_line();
    if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      ++at_;
      return;
    }
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    if (const std::size_t prefix = text_prefix(); prefix != kNoText) return quoted_text(prefix);
    if (begins_name(c)) return name();
    op();
  }

  [[nodiscard]] bool starts_line() const { return tokens_.empty() || tokens_.back().kind == PythonKind::line_end; }

  void end_line() {
    if (depth_ == 0 && !starts_line()) add(PythonKind::line_end, "");
    ++at_;
    ++line_;
    line_from_ = at_;
  }

  void skip_line() {
    while (at_ < text_.size() && peek() != '\n') ++at_;
  }

  void number() {
    const std::size_t start = at_;
    while (in_name(peek()) || peek() == '.' ||
           ((peek() == '-' || peek() == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E') && at_ > start))
      ++at_;
    std::string digits(text_.substr(start, at_ - start));
    std::erase(digits, '_');
    add(PythonKind::number, std::move(digits));
  }

  void name() {
    const std::size_t start = at_;
    while (in_name(peek())) ++at_;
    add(PythonKind::name, std::string(text_.substr(start, at_ - start)));
  }

  // How many letters (r, f, b, u) stand before a quote here.
  [[nodiscard]] std::size_t text_prefix() const {
    for (std::size_t letters = 0; letters < 3; ++letters) {
      const char c = peek(letters);
      if (c == '"' || c == '\'') return letters;
      if (std::string_view("rRfFbBuU").find(c) == std::string_view::npos || c == '\0') return kNoText;
    }
    return kNoText;
  }

  void quoted_text(std::size_t prefix) {
    const std::string letters = to_lower(text_.substr(at_, prefix));
    at_ += prefix;
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    at_ += triple ? 3 : 1;
    const bool raw = letters.find('r') != std::string::npos;
    std::string text;
    while (at_ < text_.size()) {
      const char c = peek();
      if (c == quote && (!triple || (peek(1) == quote && peek(2) == quote))) break;
      if (c == '\n' && !triple) break;  // not closed
      if (c == '\n') ++line_;
      if (c == '\\' && !raw && at_ + 1 < text_.size()) {
        escape(text);
        continue;
      }
      text += c;
      ++at_;
    }
    at_ = std::min(text_.size(), at_ + (peek() == quote ? (triple ? 3U : 1U) : 0U));
    const bool computed = letters.find('f') != std::string::npos && text.find('{') != std::string::npos;
    add(computed ? PythonKind::computed_text : PythonKind::text, std::move(text));
  }

  void escape(std::string& text) {
    const char c = peek(1);
    at_ += 2;
    if (c == '\n') {
      ++line_;
    } else {
      text += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
  }

  void op() {
    static constexpr std::string_view kPairs[] = {
        "**", "//", "==", "!=", "<=", ">=", "->", ":=", "+=", "-=", "*=", "/=", "|=", "&=", "<<", ">>"};
    std::string_view found = text_.substr(at_, 1);
    for (const std::string_view pair : kPairs)
      if (text_.substr(at_, 2) == pair) found = pair;
    at_ += found.size();
    if (found == "(" || found == "[" || found == "{") ++depth_;
    if (found == ")" || found == "]" || found == "}") depth_ = std::max(0, depth_ - 1);
    add(PythonKind::op, std::string(found));
  }

  void match_brackets() {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      PythonToken& token = tokens_[i];
      token.match = tokens_.size();
      if (token.kind != PythonKind::op) continue;
      if (token.text == "(" || token.text == "[" || token.text == "{") open.push_back(i);
      if ((token.text == ")" || token.text == "]" || token.text == "}") && !open.empty()) {
        tokens_[open.back()].match = i;
        open.pop_back();
      }
    }
  }

  static constexpr std::size_t kNoText = static_cast<std::size_t>(-1);
  std::string_view text_;
  std::size_t at_ = 0, from_ = 0, line_from_ = 0;  // from_: where the word begins; line_from_: where its line does
  int line_ = 1, depth_ = 0, indent_ = 0;
  std::vector<PythonToken> tokens_;
};

}  // namespace

std::vector<PythonToken> python_tokens(std::string_view text) { return PythonScanner(text).run(); }

}  // namespace membill::io
