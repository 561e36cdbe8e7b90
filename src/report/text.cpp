#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>
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

// Of the first character of clean text that is not empty.
std::size_t character_length(std::string_view text) { return std::max<std::size_t>(utf8_length(text), 1); }

char32_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return first;
  char32_t code = first & (0x7FU >> character.size());
  for (const char next : character.substr(1)) code = (code << 6U) | (static_cast<unsigned char>(next) & 0x3FU);
  return code;
}

struct CodeRange {
  char32_t first, last;
};
// East Asian wide and full-width blocks of Unicode 15 (EastAsianWidth.txt), as blocks.
constexpr std::array<CodeRange, 8> kWide{{{0x1100, 0x115F},
                                          {0x2E80, 0xA4CF},
                                          {0xAC00, 0xD7A3},
                                          {0xF900, 0xFAFF},
                                          {0xFE30, 0xFE6F},
                                          {0xFF00, 0xFF60},
                                          {0xFFE0, 0xFFE6},
                                          {0x20000, 0x3FFFD}}};

bool is_wide(std::string_view character) {
  const char32_t code = code_point(character);
  return std::any_of(kWide.begin(), kWide.end(),
                     [code](const CodeRange& range) { return range.first <= code && code <= range.last; });
}

// Signs that no line begins with.
bool closes(std::string_view character) {
  constexpr std::string_view kSigns = "\u3002\u3001\uFF0C\uFF1A\uFF1B\uFF09\uFF01\uFF1F\u300D\u300B";
  return kSigns.find(character) != std::string_view::npos;
}

// Signs that no line ends with.
bool opens(std::string_view character) {
  return std::string_view("\uFF08\u300C\u300A").find(character) != std::string_view::npos;
}

// What a line may not break.
struct Piece {
  std::string text;
  bool after_blank = false;
};

std::vector<Piece> pieces_of(std::string_view clean) {
  std::vector<Piece> pieces;
  bool open = false, blank = false;  // whether the last piece goes on with what is not wide; a blank came before
  bool opened = false;               // the last piece ends with an opening sign
  while (!clean.empty()) {
    const std::string_view character = clean.substr(0, character_length(clean));
    clean.remove_prefix(character.size());
    if (character == " ") {
      open = false;
      blank = true;
      continue;
    }
    const bool wide = is_wide(character);
    const bool joins = !blank && !pieces.empty() && (opened || (wide && closes(character)) || (open && !wide));
    if (joins)
      pieces.back().text += character;
    else
      pieces.push_back({std::string(character), blank});
    open = !wide;
    opened = wide && opens(character);
    blank = false;
  }
  return pieces;
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
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    width += is_wide(text.substr(0, length)) ? 2 : 1;
    text.remove_prefix(length);
  }
  return width;
}

std::string shortened(std::string_view text, std::size_t width) {
  std::string clean = clean_text(text);
  if (text_width(clean) <= width) return clean;
  std::size_t columns = 0;
  std::size_t end = 0;
  while (true) {
    const std::string_view rest = std::string_view(clean).substr(end);
    const std::size_t length = character_length(rest);
    columns += is_wide(rest.substr(0, length)) ? 2 : 1;
    if (columns > width - 3) break;
    end += length;
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
  for (const Piece& piece : pieces_of(clean_text(text))) {
    const std::size_t gap = piece.after_blank ? 1 : 0;
    if (lines.empty() || text_width(lines.back()) + gap + text_width(piece.text) > width)
      lines.push_back(piece.text);
    else
      lines.back().append(gap, ' ').append(piece.text);
  }
  return lines;
}

}  // namespace membill::report
