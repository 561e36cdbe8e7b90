#include "io/importers/shell_branches.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "io/importers/shell_scope.h"
#include "membill/catalog.h"

namespace membill::io {
namespace {

constexpr std::size_t kDeepestBranches = 1000;

// A word of a test: a variable that was never set is empty, what a command would print is not known.
std::optional<std::string> operand(const std::string& word) {
  if (word.find("$(") != std::string::npos || word.find('`') != std::string::npos) return std::nullopt;
  if (!word.starts_with('$')) return word.find('$') == std::string::npos ? std::optional(word) : std::nullopt;
  return std::string();
}

// $1 ... of the script itself: what it will be started with. Compared with nothing it counts as not given.
bool is_argument(const std::string& word) { return word.size() == 2 && word[0] == '$' && is_digit(word[1]); }

std::optional<bool> compare(const std::string& left, const std::string& sign, const std::string& right) {
  if (sign == "=" || sign == "==") return matches_pattern(left, right);
  if (sign == "!=") return !matches_pattern(left, right);
  const Value a = flag_value(left), b = flag_value(right);
  if (!a.is_int() || !b.is_int()) return std::nullopt;
  if (sign == "-eq") return a.as_int() == b.as_int();
  if (sign == "-ne") return a.as_int() != b.as_int();
  if (sign == "-gt" || sign == ">") return a.as_int() > b.as_int();
  if (sign == "-ge" || sign == ">=") return a.as_int() >= b.as_int();
  if (sign == "-lt" || sign == "<") return a.as_int() < b.as_int();
  if (sign == "-le" || sign == "<=") return a.as_int() <= b.as_int();
  return std::nullopt;
}

std::optional<bool> test(const std::vector<std::string>& words, std::size_t from, std::size_t to) {
  if (from < to && words[from] == "!") {
    const std::optional<bool> inner = test(words, from + 1, to);
    return inner ? std::optional(!*inner) : std::nullopt;
  }
  if (to - from == 1) {
    const std::optional<std::string> only = operand(words[from]);
    return only ? std::optional(!only->empty()) : std::nullopt;
  }
  if (to - from == 2 && (words[from] == "-z" || words[from] == "-n")) {
    const std::optional<std::string> only = operand(words[from + 1]);
    return only ? std::optional(only->empty() == (words[from] == "-z")) : std::nullopt;
  }
  if (to - from != 3) return std::nullopt;
  const std::string &first = words[from], &second = words[from + 2];
  if ((is_argument(first) && !second.empty()) || (is_argument(second) && !first.empty())) return std::nullopt;
  const std::optional<std::string> left = operand(first), right = operand(second);
  return left && right ? compare(*left, words[from + 1], *right) : std::nullopt;
}

}  // namespace

std::optional<bool> shell_condition(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  if (words.size() == 1 && (words[0] == "true" || words[0] == ":")) return true;
  if (words.size() == 1 && words[0] == "false") return false;
  const bool brackets =
      (words.front() == "[" && words.back() == "]") || (words.front() == "[[" && words.back() == "]]");
  if (brackets && words.size() > 2) return test(words, 1, words.size() - 1);
  if (words.front() == "test" && words.size() > 1) return test(words, 1, words.size());
  return std::nullopt;
}

void ShellBranches::open_if() {
  if (open_.size() < kDeepestBranches) open_.emplace_back();
}

void ShellBranches::set_skipped(bool skipped) {
  Branch& branch = open_.back();
  skipping_ += (skipped ? 1 : 0) - (branch.skipped ? 1 : 0);
  branch.skipped = skipped;
}

void ShellBranches::then(std::optional<bool> condition) {
  if (!is_if()) return;
  Branch& branch = open_.back();
  set_skipped(branch.taken || condition == false);
  branch.taken = branch.taken || condition == true;
}

void ShellBranches::otherwise(bool has_condition) {
  if (!is_if()) return;
  set_skipped(!has_condition && open_.back().taken);
}

void ShellBranches::close(Kind kind) {
  if (open_.empty() || open_.back().kind != kind) return;
  set_skipped(false);
  open_.pop_back();
}

void ShellBranches::close_if() { close(Kind::condition); }

void ShellBranches::open_loop(std::optional<bool> condition) {
  if (open_.size() >= kDeepestBranches) return;
  open_.emplace_back().kind = Kind::loop;
  set_skipped(condition == false);
}

void ShellBranches::close_loop() { close(Kind::loop); }

bool ShellBranches::is_in_loop() const {
  return std::any_of(open_.begin(), open_.end(), [](const Branch& branch) { return branch.kind == Kind::loop; });
}

void ShellBranches::open_case(std::string word) {
  if (open_.size() >= kDeepestBranches) return;
  Branch branch;
  branch.kind = Kind::alternatives;
  branch.at_pattern = true;
  branch.word = std::move(word);
  open_.push_back(std::move(branch));
}

bool ShellBranches::expects_pattern() const { return is_case() && open_.back().at_pattern; }

void ShellBranches::pattern(const std::vector<std::string>& alternatives) {
  Branch& branch = open_.back();
  branch.at_pattern = false;
  // A loop over the script's arguments ends at once where it is given none.
  const bool unknown = is_argument(branch.word) && !is_in_loop();
  const std::optional<std::string> word = unknown ? std::nullopt : operand(branch.word);
  const bool matches = word && std::any_of(alternatives.begin(), alternatives.end(),
                                           [&](const std::string& each) { return matches_pattern(*word, each); });
  set_skipped(branch.taken || (word && !matches));
  branch.taken = branch.taken || matches;
}

void ShellBranches::end_pattern() {
  if (!is_case()) return;
  set_skipped(false);
  open_.back().at_pattern = true;
}

void ShellBranches::close_case() { close(Kind::alternatives); }

}  // namespace membill::io
