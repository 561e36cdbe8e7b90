#include "answers/out_of_memory_text.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "membill/units.h"

namespace membill {
namespace {

constexpr std::string_view kDigits = "0123456789.";
constexpr std::array<std::string_view, 9> kUnits{"KiB", "MiB", "GiB", "TiB", "KB", "MB", "GB", "bytes", "B"};
constexpr std::size_t kShortestLead = 3;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string without_blanks(std::string_view text) {
  std::string bare(text);
  bare.erase(std::remove_if(bare.begin(), bare.end(), is_blank), bare.end());
  return bare;
}

// ESC [ ... letter: colours and movements of the cursor.
std::string without_colours(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\x1b') {
      plain += text[at];
      continue;
    }
    while (at + 1 < text.size() && (text[at] < '@' || text[at] > '~' || text[at] == '[')) ++at;
  }
  return plain;
}

std::size_t common_length(std::string_view a, std::string_view b) {
  const auto end =
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())), b.begin());
  return static_cast<std::size_t>(end.first - a.begin());
}

// What a launcher writes before each line ("[rank3]: ") is left out of those that follow the first.
std::string without_leads(std::string_view text, std::string_view lead) {
  std::string joined;
  for (bool first = true; !text.empty(); first = false) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::size_t repeated = first ? 0 : common_length(text.substr(0, end), lead);
    joined += text.substr(repeated >= kShortestLead ? repeated : 0, end - (repeated >= kShortestLead ? repeated : 0));
    text.remove_prefix(end);
  }
  return joined;
}

// Where the number begins that ends before `end`: digits with one point among them.
std::size_t start_of_number(std::string_view text, std::size_t end) {
  constexpr std::string_view kWhole = "0123456789";
  const std::size_t fraction = text.find_last_not_of(kWhole, end - 1) + 1;  // npos + 1 is 0
  if (fraction < 2 || text[fraction - 1] != '.') return fraction;
  const std::size_t whole = text.find_last_not_of(kWhole, fraction - 2) + 1;
  return whole < fraction - 1 ? whole : fraction;
}

std::optional<std::int64_t> bytes_of(std::string_view number, std::string_view unit) {
  Bytes bytes;
  std::string why;
  const std::string written = std::string(number) + " " + std::string(unit == "bytes" ? "B" : unit);
  return parse_bytes(written, bytes, why) ? std::optional(bytes.count()) : std::nullopt;
}

}  // namespace

BareMessage::BareMessage(std::string_view text, std::string_view lead)
    : text_(without_blanks(without_leads(without_colours(text), without_colours(lead)))) {}

std::optional<std::int64_t> BareMessage::size_at(std::size_t at) const {
  const std::string_view rest = std::string_view(text_).substr(std::min(at, text_.size()));
  const std::size_t digits = std::min(rest.find_first_not_of(kDigits), rest.size());
  if (digits == 0) return std::nullopt;
  for (const std::string_view unit : kUnits)
    if (rest.substr(digits, unit.size()) == unit) return bytes_of(rest.substr(0, digits), unit);
  return std::nullopt;
}

std::optional<std::int64_t> BareMessage::size_before(std::initializer_list<std::string_view> phrases) const {
  for (const std::string_view phrase : phrases) {
    const std::string words = without_blanks(phrase);
    for (std::size_t at = text_.find(words); at != std::string::npos; at = text_.find(words, at + 1)) {
      const std::string_view left = std::string_view(text_).substr(0, at);
      for (const std::string_view unit : kUnits) {
        if (left.size() <= unit.size() || left.substr(left.size() - unit.size()) != unit) continue;
        if (const auto bytes = size_at(start_of_number(left, left.size() - unit.size()))) return bytes;
      }
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> BareMessage::size_after(std::initializer_list<std::string_view> phrases) const {
  for (const std::string_view phrase : phrases) {
    const std::string words = without_blanks(phrase);
    if (const std::size_t at = text_.find(words); at != std::string::npos)
      if (const auto bytes = size_at(at + words.size())) return bytes;
  }
  return std::nullopt;
}

std::optional<std::int64_t> BareMessage::number_after(std::string_view phrase) const {
  const std::string words = without_blanks(phrase);
  const std::size_t at = text_.find(words);
  if (at == std::string::npos) return std::nullopt;
  std::int64_t number = 0;
  const auto read = std::from_chars(text_.data() + at + words.size(), text_.data() + text_.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> BareMessage::sum_of_processes() const {
  constexpr std::string_view kProcess = "Process", kHas = "has";
  std::optional<std::int64_t> sum;
  for (std::size_t at = text_.find(kProcess); at != std::string::npos; at = text_.find(kProcess, at + 1)) {
    const std::size_t end = text_.find_first_not_of(kDigits, at + kProcess.size());
    if (end == std::string::npos || text_.compare(end, kHas.size(), kHas) != 0) continue;
    if (const auto bytes = size_at(end + kHas.size())) sum = checked_add(sum.value_or(0), *bytes);
  }
  return sum;
}

}  // namespace membill
