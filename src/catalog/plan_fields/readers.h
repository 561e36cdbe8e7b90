// Strict readers of one value, and their JSON writers. A reader returns an empty string, or what is wrong.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "membill/units.h"
#include "membill/value.h"

namespace membill {

// The largest count that a plan may say: a billion, far above any real one, so that products of two stay in range.
inline constexpr std::int64_t kLargestCount = 1'000'000'000;

struct CountRange {
  std::int64_t least = 0;
  std::int64_t most = kLargestCount;
};
struct RealRange {
  double least = 0;
  double most = 1;
  bool open = false;        // `most` itself is not allowed
  bool least_open = false;  // `least` itself is not allowed
};

// A probability of dropping.
inline constexpr RealRange kDropout{0.0, 1.0, true};

// "'lora'", "8", "true", "a list": what a message says was found.
[[nodiscard]] std::string describe(const Value& value);

[[nodiscard]] std::string read_count(const Value& value, CountRange range, std::int64_t& result);
[[nodiscard]] std::string read_count(const Value& value, CountRange range, std::optional<std::int64_t>& result);
[[nodiscard]] std::string read_real(const Value& value, RealRange range, double& result);
[[nodiscard]] std::string read_real(const Value& value, RealRange range, std::optional<double>& result);
[[nodiscard]] std::string read_bool(const Value& value, bool& result);
// A list of texts, or texts with commas between.
[[nodiscard]] std::string read_texts(const Value& value, std::vector<std::string>& result);
// One text; numbers are taken as they were written.
[[nodiscard]] std::string read_text(const Value& value, std::string& result);
// A map of scalars; keys are set one by one (null: removed), others stay. `known`: the keys that are allowed, empty = any.
[[nodiscard]] std::string read_text_map(const Value& value, const std::vector<std::string_view>& known,
                                        std::map<std::string, std::string>& result, std::string& hint);
// One of `words`, compared as kebab case; `index` receives its place.
[[nodiscard]] std::string read_word(const Value& value, const std::vector<std::string_view>& words, std::size_t& index,
                                    std::string& hint);

// The hint for a wrong word: the nearest of `words`, or all of them.
[[nodiscard]] std::string nearest_or_all(std::string_view typed, const std::vector<std::string_view>& words);

// What a count or a real must be, for help: "1 or more", "0 to 3".
[[nodiscard]] std::string range_text(CountRange range);
[[nodiscard]] std::string range_text(RealRange range);

[[nodiscard]] std::string to_json(std::int64_t value);
[[nodiscard]] std::string to_json(double value);
[[nodiscard]] std::string to_json(bool value);
[[nodiscard]] std::string to_json(std::string_view value);
[[nodiscard]] std::string to_json(const std::vector<std::string>& value);
[[nodiscard]] std::string to_json(const std::map<std::string, std::string>& value);
template <typename T>
[[nodiscard]] std::string to_json(const std::optional<T>& value) {
  return value ? to_json(*value) : "null";
}

}  // namespace membill
