// Words of a shell's text: quotes, escapes, and what variables, arrays, expressions and ${...} stand for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/importers/shell_scope.h"

namespace membill::io {

class ShellReader {
 public:
  ShellReader(std::string_view text, ShellScope scope, int depth)
      : text_(text), scope_(std::move(scope)), depth_(depth) {}

  [[nodiscard]] bool done() const { return at_ >= text_.size(); }
  // Adds one character, quoted text or variable to `word`.
  void take(std::string& word);
  // The value of what begins with '$' here; the text itself when it is not known.
  std::string variable();

 protected:
  static constexpr std::size_t kLongestWord = 1 << 16;
  static constexpr int kDeepest = 20;  // of defaults inside of defaults, and of calls inside of calls

  [[nodiscard]] char at(std::size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  // The text of a here-document: variables count, quotes do not.
  std::string document_text(std::string_view text);

  std::string_view text_;
  std::size_t at_ = 0;
  ShellScope scope_;
  int depth_ = 0;
  bool quoted_ = false;               // the word has a quoted part
  bool breaks_ = false;               // a variable of the word holds blanks
  bool array_ = false;                // the word is an array
  std::vector<std::string> pending_;  // its items

 private:
  void take_double_quoted(std::string& word);
  std::string substitution(std::size_t start);
  std::string old_substitution();
  [[nodiscard]] std::string printed(std::string_view whole, std::size_t before, std::size_t after) const;
  std::string in_expression(std::string_view expression);
  std::optional<std::string> parameter(std::string_view body);
  std::string expanded(std::string_view text);
  std::string braced(std::size_t start);
  std::string in_array(std::string_view body);
};

}  // namespace membill::io
