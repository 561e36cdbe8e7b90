#include "report/text.h"

#include <fmt/format.h>

#include <array>

namespace membill::report {
namespace {

struct Unit {
  int shift;
  std::string_view name;
};
constexpr std::array<Unit, 3> kUnits{{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}}};

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

std::uint64_t magnitude(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return value < 0 ? ~bits + 1 : bits;
}

// Length of the UTF-8 sequence that starts `text`, 0 when it is none (overlong forms, surrogates and stray bytes included).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  if (first >= 0xC2 && first <= 0xDF) length = 2;
  if (first >= 0xE0 && first <= 0xEF) length = 3;
  if (first >= 0xF0 && first <= 0xF4) length = 4;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool out_of_range = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return overlong || out_of_range ? 0 : length;
}

std::string repaired(std::string_view text, bool control_too) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    const bool c1 = length == 2 && first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;
    if (length == 0) {
      result += kReplacement;
    } else if (control_too && (c1 || first < 0x20 || first == 0x7F)) {
      result += '?';
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

}  // namespace

std::string size_text(std::int64_t bytes) {
  const std::uint64_t size = magnitude(bytes);
  const std::string_view sign = bytes < 0 ? "-" : "";
  for (const Unit& unit : kUnits) {
    const std::uint64_t one = std::uint64_t{1} << unit.shift;
    // Half a hundredth of the next smaller unit below would print as 1024.00 of that.
    if (size < one - (one >> 10) / 200) continue;
    const std::uint64_t hundredths = ((size & (one - 1)) * 100 + one / 2) >> unit.shift;
    const std::uint64_t whole = (size >> unit.shift) + hundredths / 100;
    return fmt::format("{}{}.{:02} {}", sign, whole, hundredths % 100, unit.name);
  }
  return fmt::format("{}{} B", sign, size);
}

std::string size_text(std::optional<std::int64_t> bytes) { return bytes ? size_text(*bytes) : std::string("unknown"); }

std::string share_text(std::int64_t part, std::int64_t total) {
  if (total <= 0) return {};
  return fmt::format("{:.1f}%", 100.0 * static_cast<double>(part) / static_cast<double>(total));
}

std::string count_text(std::int64_t count) {
  std::string digits = fmt::format("{}", magnitude(count));
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return count < 0 ? "-" + digits : digits;
}

std::string range_text(const Range& range) {
  if (range.low && range.high && *range.low != *range.high) {
    return size_text(*range.low) + " to " + size_text(*range.high);
  }
  return size_text(range.likely);
}

std::string_view answer_word(Answer answer) {
  switch (answer) {
    case Answer::fits: return "fits";
    case Answer::tight: return "tight";
    case Answer::does_not_fit: return "does-not-fit";
    case Answer::unknown: return "unknown";
    case Answer::none: return "none";
  }
  return "none";
}

std::string_view place_word(Place place) {
  switch (place) {
    case Place::device: return "device";
    case Place::host: return "host";
    case Place::nvme: return "nvme";
  }
  return "device";
}

std::string clean_text(std::string_view text) { return repaired(text, true); }
std::string valid_utf8(std::string_view text) { return repaired(text, false); }

std::size_t text_width(std::string_view text) {
  std::size_t width = 0;
  for (const char c : text) width += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return width;
}

std::string shortened(std::string_view text, std::size_t width) {
  std::string clean = clean_text(text);
  if (text_width(clean) <= width) return clean;
  std::size_t columns = 0;
  std::size_t end = 0;
  while (columns < width - 3) {
    end += utf8_length(std::string_view(clean).substr(end));
    ++columns;
  }
  clean.resize(end);
  return clean + "...";
}

std::string left_aligned(std::string_view text, std::size_t width) {
  std::string result(text);
  const std::size_t used = text_width(text);
  if (used < width) result.append(width - used, ' ');
  return result;
}

std::string right_aligned(std::string_view text, std::size_t width) {
  const std::size_t used = text_width(text);
  return std::string(used < width ? width - used : 0, ' ').append(text);
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  const std::string clean = clean_text(text);
  std::string_view rest = clean;
  while (!rest.empty()) {
    const std::size_t blank = rest.find(' ');
    const std::string_view word = rest.substr(0, blank);
    rest.remove_prefix(blank == std::string_view::npos ? rest.size() : blank + 1);
    if (word.empty()) continue;
    if (lines.empty() || text_width(lines.back()) + 1 + text_width(word) > width) {
      lines.emplace_back(word);
    } else {
      lines.back().append(1, ' ').append(word);
    }
  }
  return lines;
}

}  // namespace membill::report
