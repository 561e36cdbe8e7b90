#include "membill/problem.h"

#include <algorithm>
#include <cstddef>

#include "base/text.h"

namespace membill {
namespace {

constexpr std::size_t kLongestTypedWord = 64;  // longer words get no suggestion
constexpr std::size_t kLongestQuote = 60;
constexpr std::size_t kMostProblems = 100;  // no one reads more, and each new one is compared with all

// Replaces what a terminal would obey: ASCII controls, DEL, and the C1 controls (U+0080 to U+009F, 0xC2 0x80 to 0x9F in UTF-8).
std::string without_controls(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    if (byte == 0xC2 && next >= 0x80 && next <= 0x9F) {
      result += '?';
      ++i;
    } else {
      result += byte < 0x20 || byte == 0x7F ? '?' : text[i];
    }
  }
  return result;
}

// Edits that turn `a` into `b`: insert, delete, replace, or swap two neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string quoted(std::string_view text) {
  if (text.size() <= kLongestQuote) return "'" + without_controls(text) + "'";
  std::size_t end = kLongestQuote;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // not inside a UTF-8 character
  return "'" + without_controls(text.substr(0, end)) + "...'";
}

std::string to_text(const Problem& problem) {
  std::string result;
  for (const std::string* part : {&problem.file, &problem.key, &problem.message}) {
    if (part->empty()) continue;
    if (!result.empty()) result += ": ";
    result += *part;
  }
  if (!problem.hint.empty()) result += (result.empty() ? "(" : " (") + problem.hint + ")";
  return without_controls(result);
}

void Problems::add(Problem problem) {
  if (list_.size() > kMostProblems || std::find(list_.begin(), list_.end(), problem) != list_.end()) return;
  if (list_.size() == kMostProblems)
    problem = {std::move(problem.file), "",
               "has more problems: the first " + std::to_string(kMostProblems) + " are listed", ""};
  list_.push_back(std::move(problem));
}

std::string_view nearest_word(std::string_view typed, const std::vector<std::string_view>& words) {
  if (typed.empty() || typed.size() > kLongestTypedWord) return {};
  const std::string wanted = to_kebab(typed);
  std::size_t best = std::max<std::size_t>(1, typed.size() / 3) + 1;
  std::string_view nearest;
  for (const std::string_view word : words) {
    if (word.size() > 2 * kLongestTypedWord) continue;
    const std::size_t distance = edit_distance(wanted, to_kebab(word));
    if (distance < best) {
      best = distance;
      nearest = word;
    }
  }
  return nearest;
}

}  // namespace membill
