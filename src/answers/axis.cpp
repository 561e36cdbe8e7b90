#include "answers/axis.h"

#include <cstdint>
#include <optional>

#include "base/text.h"
#include "membill/problem.h"
#include "membill/units.h"

namespace membill {
namespace {

constexpr std::size_t kMostValues = 1000000;

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  std::string why;
  return parse_count(text, value, why) ? std::optional(value) : std::nullopt;
}

struct RangeText {
  std::int64_t from = 0, to = 0, step = 1;
  bool multiply = false;
};

// A range, or none when the text is a value of another kind.
std::optional<RangeText> read_range(std::string_view text) {
  RangeText range;
  std::string_view from, rest = text;
  const std::size_t dots = text.find("..");
  const std::size_t colon = text.find(':');
  const bool dotted = dots != std::string_view::npos;
  if (!dotted && colon == std::string_view::npos) return std::nullopt;
  from = text.substr(0, dotted ? dots : colon);
  rest = text.substr(dotted ? dots + 2 : colon + 1);
  const std::size_t second = rest.find(':');
  std::string_view step = second == std::string_view::npos ? "1" : rest.substr(second + 1);
  if (!step.empty() && step.front() == '*') {
    range.multiply = true;
    step.remove_prefix(1);
  }
  const auto first = whole(trim(from)), last = whole(trim(rest.substr(0, second))), by = whole(trim(step));
  if (!first || !last || !by) return std::nullopt;
  range.from = *first;
  range.to = *last;
  range.step = *by;
  return range;
}

std::string add_range(const RangeText& range, std::string_view text, std::vector<std::string>& values) {
  if (range.from > range.to) return quoted(text) + " runs backwards";
  const bool stands_still = range.multiply ? range.step < 2 || range.from == 0 : range.step < 1;
  if (stands_still && range.from != range.to) return quoted(text) + " never ends";
  for (std::int64_t value = range.from;;) {
    if (values.size() == kMostValues) return "has more than " + std::to_string(kMostValues) + " values";
    values.push_back(std::to_string(value));
    const bool is_last = range.multiply ? value > range.to / range.step : value > range.to - range.step;
    if (stands_still || is_last) break;
    value = range.multiply ? value * range.step : value + range.step;
  }
  return {};
}

}  // namespace

std::vector<std::string> axis_values(std::string_view text, std::string& why) {
  std::vector<std::string> values;
  for (const std::string& part : split(text, ',')) {
    if (part.empty()) {
      why = "has an empty value in " + quoted(text);
    } else if (const auto range = read_range(part)) {
      why = add_range(*range, part, values);
    } else {
      values.push_back(part);
    }
    if (!why.empty()) return {};
  }
  return values;
}

}  // namespace membill
