#include "io/importers/shell_words.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/text.h"
#include "io/importers/shell_arithmetic.h"

namespace membill::io {
namespace {

constexpr std::size_t kLongestValue = 1 << 16;  // a variable that doubles itself ends here
constexpr int kDeepest = 20;                    // of defaults inside of defaults

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return is_name_start(c) || is_digit(c); }

class Splitter {
 public:
  Splitter(std::string_view script, Variables variables) : text_(script), variables_(std::move(variables)) {}

  std::vector<ShellCommand> split() {
    while (at_ < text_.size() && commands_.size() < kMostCommands && words_in_all_ < kMostWords) {
      const char c = text_[at_];
      if (c == '\\' && next() == '\n') {
        at_ += 2;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        end_word();
        ++at_;
      } else if (c == '#' && !in_word_) {
        skip_line();
      } else if (c == '<' && next() == '<' && !in_word_) {
        skip_here_document();
      } else if (c == '\n' || c == ';' || c == '&' || c == '|' || c == '(' || c == ')' || c == '`') {
        separate(c);
      } else if (c == '<' || c == '>') {
        redirect();
      } else {
        in_word_ = true;
        take(word_);
      }
    }
    end_word();
    end_command();
    return std::move(commands_);
  }

 private:
  char next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }

  void skip_line() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  }

  // "> file", "2>&1": neither the sign nor the file is a word.
  void redirect() {
    if (word_ == "1" || word_ == "2") drop_word();
    end_word();
    while (at_ < text_.size() && (text_[at_] == '<' || text_[at_] == '>' || text_[at_] == '&' || text_[at_] == ' '))
      ++at_;
    while (at_ < text_.size() && std::string_view(" \t\r\n;|&").find(text_[at_]) == std::string_view::npos) ++at_;
  }

  void skip_here_document() {
    at_ += 2;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    if (at_ < text_.size() && text_[at_] == '<') return skip_line();  // <<< word
    std::string ending;
    while (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != ' ') {
      if (text_[at_] != '\'' && text_[at_] != '"') ending += text_[at_];
      ++at_;
    }
    skip_line();
    while (at_ < text_.size()) {
      const std::size_t start = ++at_;
      skip_line();
      if (trim(text_.substr(start, at_ - start)) == ending) return;
    }
  }

  // NAME=( ... ) is an array; any other sign ends a command.
  void separate(char c) {
    const bool array = c == '(' && in_word_ && (word_.ends_with('=') && is_assignment(word_));
    if (array) return read_array();
    end_word();
    ++at_;
    end_command();
  }

  void read_array() {
    std::string name = word_.substr(0, word_.size() - 1);
    const bool appends = name.ends_with('+');
    if (appends) name.pop_back();
    drop_word();
    ++at_;
    std::vector<std::string> items;
    if (appends) items = arrays_[name];
    while (at_ < text_.size() && text_[at_] != ')' && items.size() < kMostWords) {
      const char c = text_[at_];
      if (c == '#') {
        skip_line();
      } else if (c == '\\' && next() == '\n') {
        at_ += 2;
      } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ++at_;
      } else {
        std::string item;
        while (at_ < text_.size() && std::string_view(" \t\r\n)").find(text_[at_]) == std::string_view::npos)
          take(item);
        items.push_back(std::move(item));
      }
    }
    if (at_ < text_.size()) ++at_;
    arrays_[name] = std::move(items);
  }

  // One character, quoted text or variable of a word.
  void take(std::string& word) {
    const char c = text_[at_];
    if (c == '\'') {
      const std::size_t end = std::min(text_.find('\'', at_ + 1), text_.size());
      word += text_.substr(at_ + 1, end - at_ - 1);
      quoted_ = true;
      at_ = std::min(end + 1, text_.size());
    } else if (c == '"') {
      take_double_quoted(word);
    } else if (c == '\\') {
      if (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') word += text_[at_ + 1];
      at_ = std::min(at_ + 2, text_.size());
    } else if (c == '$') {
      const std::string value = variable(0);
      word += value;
      if (value.find(' ') != std::string::npos && !value.starts_with("$(")) breaks_ = true;
    } else {
      word += c;
      ++at_;
    }
    if (word.size() > kLongestValue) word.resize(kLongestValue);
  }

  void take_double_quoted(std::string& word) {
    quoted_ = true;
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"') {
      const char c = text_[at_];
      if (c == '\\' && at_ + 1 < text_.size()) {
        const char escaped = text_[at_ + 1];
        if (escaped != '\n') {
          if (std::string_view("\"\\$`").find(escaped) == std::string_view::npos) word += c;
          word += escaped;
        }
        at_ += 2;
      } else if (c == '$') {
        word += variable(0);
      } else {
        word += c;
        ++at_;
      }
      if (word.size() > kLongestValue) word.resize(kLongestValue);
    }
    if (at_ < text_.size()) ++at_;
  }

  // The value of what begins with '$' at `at_`; the text itself when it is not known.
  std::string variable(int depth) {
    const std::size_t start = at_++;
    if (at_ >= text_.size()) return "$";
    if (text_[at_] == '(') return substitution(start);
    if (text_[at_] == '{') return braced(start, depth);
    std::string name;
    if (is_name_start(text_[at_])) {
      while (at_ < text_.size() && is_name(text_[at_])) name += text_[at_++];
    } else {
      name = text_[at_++];
    }
    if (name == "@" || name == "*") return "";
    return value_of(name).value_or("$" + name);
  }

  std::string substitution(std::size_t start) {
    int depth = 0;
    while (at_ < text_.size()) {
      if (text_[at_] == '(') ++depth;
      if (text_[at_++] == ')' && --depth == 0) break;
    }
    const std::string_view whole = text_.substr(start, at_ - start);
    if (whole.starts_with("$(expr ")) return calculated(whole.substr(7, whole.size() - 8), whole);
    if (!whole.starts_with("$((") || !whole.ends_with("))")) return std::string(whole);
    return calculated(whole.substr(3, whole.size() - 5), whole);
  }

  std::string calculated(std::string_view expression, std::string_view whole) const {
    const std::optional<std::int64_t> value = shell_arithmetic(expand(expression));
    return value ? std::to_string(*value) : std::string(whole);
  }

  // Variables inside of an expression, with or without '$'.
  std::string expand(std::string_view expression) const {
    std::string result;
    for (std::size_t i = 0; i < expression.size();) {
      if (std::string_view("${}\\").find(expression[i]) != std::string_view::npos) {
        ++i;
      } else if (is_name_start(expression[i])) {
        std::string name;
        while (i < expression.size() && is_name(expression[i])) name += expression[i++];
        result += value_of(name).value_or(name);
      } else {
        result += expression[i++];
      }
    }
    return result;
  }

  std::string braced(std::size_t start, int depth) {
    int open = 0;
    const std::size_t inside = at_ + 1;
    while (at_ < text_.size()) {
      if (text_[at_] == '{') ++open;
      if (text_[at_++] == '}' && --open == 0) break;
    }
    const std::string_view body = text_.substr(inside, at_ > inside ? at_ - inside - 1 : 0);
    std::size_t end = 0;
    while (end < body.size() && is_name(body[end])) ++end;
    const std::string name(body.substr(0, end));
    std::string_view rest = body.substr(end);
    if (rest == "[@]" || rest == "[*]") return in_array(name);
    const std::optional<std::string> value = value_of(name);
    if (value && (rest.empty() || rest.front() == ':' || rest.front() == '-' || rest.front() == '=')) {
      if (!value->empty() || rest.empty()) return *value;
    }
    if (rest.starts_with(':')) rest.remove_prefix(1);
    const bool has_default = rest.starts_with('-') || rest.starts_with('=');
    if (!has_default) return std::string(text_.substr(start, at_ - start));
    return default_text(rest.substr(1), depth);
  }

  // A default may hold quotes and variables itself.
  std::string default_text(std::string_view text, int depth) {
    if (depth >= kDeepest) return {};
    Splitter inner(text, variables_);
    inner.depth_ = depth_ + 1;
    if (inner.depth_ >= kDeepest) return std::string(text);
    std::string result;
    while (inner.at_ < inner.text_.size()) inner.take(result);
    quoted_ = quoted_ || inner.quoted_;
    return result;
  }

  std::string in_array(const std::string& name) {
    const auto found = arrays_.find(name);
    if (found == arrays_.end()) return {};
    for (const std::string& item : found->second) pending_.push_back(item);
    array_ = true;
    return {};
  }

  std::optional<std::string> value_of(const std::string& name) const {
    const auto found = variables_.find(name);
    if (found == variables_.end()) return std::nullopt;
    return found->second;
  }

  static bool is_assignment(const std::string& word) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || !is_name_start(word[0])) return false;
    for (std::size_t i = 0; i < equals; ++i) {
      if (!is_name(word[i]) && !(i + 1 == equals && word[i] == '+')) return false;
    }
    return true;
  }

  void drop_word() {
    word_.clear();
    in_word_ = quoted_ = breaks_ = false;
  }

  void end_word() {
    if (array_ && word_.empty()) {
      for (std::string& item : pending_) add_word(std::move(item));
      pending_.clear();
      array_ = false;
      return drop_word();
    }
    array_ = false;
    pending_.clear();
    if (!in_word_) return;
    const bool own = words_.empty() || exports_;
    if (own && is_assignment(word_)) {
      assign();
    } else if (breaks_ && !quoted_) {
      std::replace_if(
          word_.begin(), word_.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
      for (std::string& part : membill::split(word_, ' ')) {
        if (!part.empty()) add_word(std::move(part));
      }
    } else if (words_.empty() && (word_ == "export" || word_ == "local" || word_ == "declare")) {
      exports_ = true;
    } else if (words_.empty() && !quoted_ && is_reserved(word_)) {
      // a command begins behind it
    } else if (!word_.empty() || quoted_) {
      add_word(word_);
    }
    drop_word();
  }

  static bool is_reserved(std::string_view word) {
    return word == "then" || word == "else" || word == "do" || word == "elif" || word == "{";
  }

  void add_word(std::string word) {
    ++words_in_all_;
    words_.push_back(std::move(word));
  }

  void assign() {
    const std::size_t equals = word_.find('=');
    std::string name = word_.substr(0, equals);
    std::string value = word_.substr(equals + 1);
    if (name.ends_with('+')) {
      name.pop_back();
      value = value_of(name).value_or("") + value;
    }
    if (value.size() > kLongestValue) value.resize(kLongestValue);
    variables_[name] = std::move(value);
  }

  void end_command() {
    exports_ = false;
    if (words_.empty()) return;
    commands_.push_back({std::move(words_), variables_});
    words_.clear();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string word_;
  bool in_word_ = false, quoted_ = false, breaks_ = false, exports_ = false, array_ = false;
  int depth_ = 0;
  std::vector<std::string> words_, pending_;
  std::size_t words_in_all_ = 0;
  Variables variables_;
  std::map<std::string, std::vector<std::string>, std::less<>> arrays_;
  std::vector<ShellCommand> commands_;
};

}  // namespace

std::vector<ShellCommand> split_one(std::string_view script, Variables variables) {
  return Splitter(script, std::move(variables)).split();
}

}  // namespace membill::io
