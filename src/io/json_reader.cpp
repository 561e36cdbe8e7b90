#include "io/json_reader.h"

#include <charconv>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.h"
#include "io/document.h"
#include "io/text_file.h"
#include "membill/problem.h"

namespace membill::io {
namespace {

class JsonParser {
 public:
  JsonParser(std::string_view text, const std::string& file, JsonDialect dialect)
      : text_(text), file_(file), dialect_(dialect) {}

  Value parse_document() {
    Value value = parse_value();
    skip_blanks();
    if (at_ < text_.size()) fail("text follows after the end of the document");
    problems_.throw_if_any();
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& message, std::string hint = {}) {
    problems_.add(Problem{file_, "", line_prefix(line_) + message, std::move(hint)});
    throw InputError(problems_.list());
  }
  void report(int line, const std::string& message) {
    problems_.add(Problem{file_, path(), line_prefix(line) + message, ""});
  }
  static std::string line_prefix(int line) { return "line " + std::to_string(line) + ": "; }
  [[nodiscard]] std::string path() const { return join(path_, "."); }

  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_blanks() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return;
      }
    }
  }

  Value parse_value() {
    skip_blanks();
    if (++values_ > kMostValues) fail("holds more than 2000000 values");
    const int line = line_;
    Value value = parse_unplaced_value();
    value.line = line;
    return value;
  }

  Value parse_unplaced_value() {
    const char c = peek();
    if (at_ >= text_.size()) fail("the text ends where a value is expected");
    if (c == '{') return parse_map();
    if (c == '[') return parse_list();
    if (c == '"') return Value::of(parse_string());
    if (is_digit(c) || c == '-') return parse_number();
    return parse_word();
  }

  Value parse_word() {
    const std::size_t start = at_;
    const auto is_letter = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
    };
    while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
    const std::string_view word = text_.substr(start, at_ - start);
    if (word == "null") return Value();
    if (word == "true" || word == "false") return Value::of(word == "true");
    if (word == "Infinity") return parse_infinity(word);
    if (word == "NaN") return report(line_, "NaN is not a number"), Value();
    if (word == "True" || word == "False" || word == "None")
      fail("'" + std::string(word) + "' is Python", "JSON writes true, false, null");
    if (!word.empty()) fail(quoted(word) + " is not a value", "text needs double quotes");
    fail_at_character("a value");
  }

  Value parse_infinity(std::string_view written) {
    if (dialect_ == JsonDialect::python) return Value::of(std::string(written));
    return report(line_, std::string(written) + " is not a number"), Value();
  }

  [[noreturn]] void fail_at_character(const std::string& expected) {
    const char c = peek();
    if (at_ >= text_.size()) fail("the text ends where " + expected + " is expected");
    if (c == '/' || c == '#') fail("JSON has no comments");
    if (c == '\'') fail("single quotes are not JSON", "text needs double quotes");
    const std::string found =
        static_cast<unsigned char>(c) < 0x80 ? "'" + std::string(1, c) + "'" : "another character";
    fail("expected " + expected + ", found " + found);
  }

  void enter() {
    if (++depth_ > kDeepest) fail("lists and maps are nested deeper than 64");
    ++at_;
  }

  // After an element: true when another follows, false at `close`.
  bool next_element(char close) {
    skip_blanks();
    if (peek() == close) {
      ++at_;
      --depth_;
      return false;
    }
    if (peek() != ',') fail_at_character(std::string("',' or '") + close + "'");
    ++at_;
    skip_blanks();
    if (peek() == close) fail(std::string("a comma stands before '") + close + "'");
    return true;
  }

  // True when the list or map that was just entered ends at once.
  bool is_empty(char close) {
    skip_blanks();
    if (peek() != close) return false;
    ++at_;
    --depth_;
    return true;
  }

  Value parse_list() {
    enter();
    std::vector<Value> items;
    if (is_empty(']')) return Value::make_list();
    do items.push_back(parse_value());
    while (next_element(']'));
    return Value::make_list(std::move(items));
  }

  Value parse_map() {
    enter();
    std::vector<Value::Entry> entries;
    KeyIndex keys;
    if (is_empty('}')) return Value::make_map();
    do {
      skip_blanks();
      const int line = line_;
      if (peek() != '"') fail_at_character("a key in double quotes");
      path_.push_back(parse_string());
      skip_blanks();
      if (peek() != ':') fail_at_character("':'");
      ++at_;
      Value value = parse_value();
      if (const int first = keys.add(path_.back(), line); first != 0) {
        report(line, "duplicate key (first on line " + std::to_string(first) + ")");
      } else {
        entries.emplace_back(path_.back(), std::move(value));
      }
      path_.pop_back();
    } while (next_element('}'));
    return Value::make_map(std::move(entries));
  }

  Value parse_number() {
    const std::size_t start = at_;
    if (peek() == '-') ++at_;
    if (text_.substr(at_, 8) == "Infinity") return at_ += 8, parse_infinity("-Infinity");
    const bool zero = peek() == '0';
    const std::size_t digits = take_digits();
    if (digits == 0) fail("a number needs a digit after '-'");
    if (zero && digits > 1) fail("a number must not begin with 0");
    bool real = false;
    if (peek() == '.') {
      ++at_;
      real = true;
      if (take_digits() == 0) fail("a number needs a digit after the decimal point");
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      real = true;
      if (peek() == '+' || peek() == '-') ++at_;
      if (take_digits() == 0) fail("a number needs a digit in its exponent");
    }
    return to_number(text_.substr(start, at_ - start), real);
  }

  std::size_t take_digits() {
    const std::size_t start = at_;
    while (is_digit(peek())) ++at_;
    return at_ - start;
  }

  Value to_number(std::string_view written, bool real) {
    Value value;
    std::string why;
    if (!(real ? read_real(written, value, why) : read_integer(written, value, why)))
      report(line_, quoted(written) + " " + why);
    return value;
  }

  std::string parse_string() {
    ++at_;
    std::string result;
    for (;;) {
      const std::size_t start = at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
             static_cast<unsigned char>(text_[at_]) >= 0x20)
        ++at_;
      result += text_.substr(start, at_ - start);
      const char c = peek();
      if (at_ >= text_.size()) fail("the text ends inside of a string");
      if (c == '"') return ++at_, result;
      if (c == '\n' || c == '\r') fail("a string is not closed on its line");
      if (c != '\\') fail("a control character in a string needs an escape");
      ++at_;
      parse_escape(result);
    }
  }

  void parse_escape(std::string& result) {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const char c = peek();
    ++at_;
    if (c == 'u') return append_utf8(parse_code_point(), result);
    const std::size_t letter = kLetters.find(c);
    if (c == '\0' || letter == std::string_view::npos) fail("a string holds an unknown escape");
    result += kMeanings[letter];
  }

  unsigned parse_code_point() {
    const unsigned high = parse_hex4();
    if (high < 0xD800 || high > 0xDFFF) return high;
    if (high > 0xDBFF || text_.substr(at_, 2) != "\\u") fail("a string holds half of a surrogate pair");
    at_ += 2;
    const unsigned low = parse_hex4();
    if (low < 0xDC00 || low > 0xDFFF) fail("a string holds half of a surrogate pair");
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
  }

  unsigned parse_hex4() {
    unsigned result = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), result, 16);
    if (digits.size() < 4 || error != std::errc() || end != digits.data() + 4) fail("a string holds an unknown escape");
    at_ += 4;
    return result;
  }

  static void append_utf8(unsigned code, std::string& result) {
    const auto tail = [&](unsigned shift) { result += static_cast<char>(0x80U | ((code >> shift) & 0x3FU)); };
    if (code < 0x80) {
      result += static_cast<char>(code);
    } else if (code < 0x800) {
      result += static_cast<char>(0xC0U | (code >> 6));
      tail(0);
    } else if (code < 0x10000) {
      result += static_cast<char>(0xE0U | (code >> 12));
      tail(6);
      tail(0);
    } else {
      result += static_cast<char>(0xF0U | (code >> 18));
      tail(12);
      tail(6);
      tail(0);
    }
  }

  std::string_view text_;
  const std::string& file_;
  JsonDialect dialect_;
  std::size_t at_ = 0;
  int line_ = 1;
  int depth_ = 0;
  std::int64_t values_ = 0;
  std::vector<std::string> path_;
  Problems problems_;
};

}  // namespace

Value parse_json(std::string_view text, const std::string& file, JsonDialect dialect) {
  return JsonParser(check_text(text, file), file, dialect).parse_document();
}

}  // namespace membill::io
