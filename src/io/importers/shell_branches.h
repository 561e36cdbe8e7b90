// Which branches of a script run: if, elif, else, case and loops, by the tests that the text itself decides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace membill::io {

// Whether the words of a command are true as a condition: [ -z "$X" ], [[ $A == b* ]], true. Nothing: the text does not say. A variable
// that is not set is empty.
[[nodiscard]] std::optional<bool> shell_condition(const std::vector<std::string>& words);

// The branches that enclose a place of a script.
class ShellBranches {
 public:
  // Whether the text here does not run.
  [[nodiscard]] bool skips() const { return skipping_ > 0; }

  void open_if();
  // Behind the condition of an if or an elif, from whose words it was decided; unknown ones are taken to run.
  void then(std::optional<bool> condition);
  // else, or elif whose condition follows.
  void otherwise(bool has_condition);
  void close_if();

  // A loop's body: one turn is taken unless its condition is known to be false.
  void open_loop(std::optional<bool> condition);
  void close_loop();

  void open_case(std::string word);
  // Whether the place is one where the patterns of a case begin.
  [[nodiscard]] bool expects_pattern() const;
  void pattern(const std::vector<std::string>& alternatives);
  void end_pattern();
  void close_case();

 private:
  enum class Kind : std::uint8_t { condition, alternatives, loop };
  struct Branch {
    Kind kind = Kind::condition;
    std::string word;         // of a case
    bool taken = false;       // one of its parts is known to run
    bool skipped = false;     // this part does not run
    bool at_pattern = false;  // of a case
  };
  void set_skipped(bool skipped);
  void close(Kind kind);
  [[nodiscard]] bool is_case() const { return !open_.empty() && open_.back().kind == Kind::alternatives; }
  [[nodiscard]] bool is_if() const { return !open_.empty() && open_.back().kind == Kind::condition; }
  [[nodiscard]] bool is_in_loop() const;

  std::vector<Branch> open_;
  int skipping_ = 0;
};

}  // namespace membill::io
