// Problems of the user's input, collected and reported all at once.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace membill {

// One thing that is wrong with the input. Printed as `membill: file: key: message (hint)`; empty parts are left out.
struct Problem {
  std::string file;     // last name of the file, or the flag or argument's source ("command line"); may be empty
  std::string key;      // dotted key, or flag as typed ("--seq"); may be empty
  std::string message;  // what is wrong, one clause, no full stop
  std::string hint;     // the nearest valid word or how to mend it; may be empty
  bool operator==(const Problem&) const = default;
};

// `problem` as one line without the program's name and without a newline. Control characters become '?'.
[[nodiscard]] std::string to_text(const Problem& problem);

// `text` in single quotes for a message: control characters become '?', what exceeds 60 bytes is cut to '...'.
[[nodiscard]] std::string quoted(std::string_view text);

// Thrown by readers and validators: at least one problem. The command line prints each on stderr and exits with 2.
class InputError : public std::exception {
 public:
  explicit InputError(std::vector<Problem> problems) : problems_(std::move(problems)) {}
  explicit InputError(Problem problem) { problems_.push_back(std::move(problem)); }
  [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }
  [[nodiscard]] const char* what() const noexcept override { return "invalid input"; }

 private:
  std::vector<Problem> problems_;
};

// Collects problems; `throw_if_any` ends the collection.
class Problems {
 public:
  void add(Problem problem);  // a problem equal to one already held is dropped
  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] const std::vector<Problem>& list() const { return list_; }
  void throw_if_any() const {
    if (!list_.empty()) throw InputError(list_);
  }

 private:
  std::vector<Problem> list_;
};

// The member of `words` nearest to `typed` (Damerau-Levenshtein, case-insensitive, '-' and '_' alike), or an empty view when none is
// near enough to be a likely slip (distance above a third of the length, at least 1).
[[nodiscard]] std::string_view nearest_word(std::string_view typed, const std::vector<std::string_view>& words);

}  // namespace membill
