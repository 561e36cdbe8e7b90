#include "catalog/plan_fields/readers.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "membill/problem.h"

namespace membill {
namespace {

constexpr double kNoLimit = 1e300;

std::string shortest(double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

bool has_control(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return true;
  }
  return false;
}

bool in_range(double value, RealRange range) {
  if (!std::isfinite(value) || value < range.least || value > range.most) return false;
  return !(range.open && value == range.most) && !(range.least_open && value == range.least);
}

}  // namespace

std::string describe(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::null: return "null";
    case Value::Kind::boolean: return value.as_bool() ? "true" : "false";
    case Value::Kind::integer: return std::to_string(value.as_int());
    case Value::Kind::real: return value.written().empty() ? shortest(value.as_real()) : value.written();
    case Value::Kind::string: return "the text " + quoted(value.as_string());
    case Value::Kind::list: return "a list";
    case Value::Kind::map: return "a map";
  }
  return "";
}

std::string range_text(CountRange range) {
  if (range.most == kLargestCount) return std::to_string(range.least) + " or more";
  return std::to_string(range.least) + " to " + std::to_string(range.most);
}

std::string range_text(RealRange range) {
  const std::string least = shortest(range.least) + (range.least_open ? " (not itself)" : "");
  if (range.most >= kNoLimit) return least + " or more";
  return least + " to " + shortest(range.most) + (range.open ? " (not itself)" : "");
}

std::string read_count(const Value& value, CountRange range, std::int64_t& result) {
  std::string needed = "needs a whole number, " + range_text(range) + ", not " + describe(value);
  if (!value.is_int()) return needed;
  if (value.as_int() < range.least) return needed;
  if (value.as_int() > range.most) return range.most == kLargestCount ? "is too large" : needed;
  result = value.as_int();
  return {};
}

std::string read_count(const Value& value, CountRange range, std::optional<std::int64_t>& result) {
  if (value.is_null()) return result.reset(), std::string();
  std::int64_t count = 0;
  std::string wrong = read_count(value, range, count);
  if (wrong.empty()) result = count;
  return wrong;
}

std::string read_real(const Value& value, RealRange range, double& result) {
  if (!value.is_number() || !in_range(value.as_real(), range)) {
    return "needs a number, " + range_text(range) + ", not " + describe(value);
  }
  result = value.as_real();
  return {};
}

std::string read_real(const Value& value, RealRange range, std::optional<double>& result) {
  if (value.is_null()) return result.reset(), std::string();
  double real = 0;
  std::string wrong = read_real(value, range, real);
  if (wrong.empty()) result = real;
  return wrong;
}

std::string read_bool(const Value& value, bool& result) {
  if (!value.is_bool()) return "needs true or false, not " + describe(value);
  result = value.as_bool();
  return {};
}

std::string read_text(const Value& value, std::string& result) {
  if (value.is_string()) {
    if (value.as_string().empty()) return "must not be empty";
    if (has_control(value.as_string())) return "must not hold control characters";
    result = value.as_string();
  } else if (value.is_number()) {
    result = describe(value);
  } else {
    return "needs text, not " + describe(value);
  }
  return {};
}

std::string read_texts(const Value& value, std::vector<std::string>& result) {
  std::vector<std::string> texts;
  if (value.is_string()) {
    texts = split(value.as_string(), ',');
  } else if (value.is_list()) {
    for (const Value& item : value.items()) {
      if (!item.is_string()) return "needs a list of names, one of them is " + describe(item);
      texts.push_back(item.as_string());
    }
  } else {
    return "needs a list of names, not " + describe(value);
  }
  for (const std::string& text : texts) {
    if (text.empty()) return "has an empty name";
    if (has_control(text)) return "must not hold control characters";
  }
  result = std::move(texts);
  return {};
}

std::string read_text_map(const Value& value, const std::vector<std::string_view>& known,
                          std::map<std::string, std::string>& result, std::string& hint) {
  if (!value.is_map()) return "needs a map, not " + describe(value);
  std::map<std::string, std::string> texts = result;
  for (const auto& [key, entry] : value.entries()) {
    if (key.empty()) return "has an empty key";
    bool allowed = known.empty();
    for (const std::string_view word : known) allowed = allowed || word == key;
    if (!allowed) {
      hint = nearest_word(key, known);
      return "has the unknown key " + quoted(key);
    }
    if (entry.is_null()) {
      texts.erase(key);
    } else if (entry.is_bool()) {
      texts[key] = describe(entry);
    } else if (std::string wrong = read_text(entry, texts[key]); !wrong.empty()) {
      return quoted(key) + " " + wrong;
    }
  }
  result = std::move(texts);
  return {};
}

std::string nearest_or_all(std::string_view typed, const std::vector<std::string_view>& words) {
  const std::string_view nearest = nearest_word(typed, words);
  if (!nearest.empty()) return std::string(nearest);
  return "one of " + join({words.begin(), words.end()}, ", ");
}

std::string read_word(const Value& value, const std::vector<std::string_view>& words, std::size_t& index,
                      std::string& hint) {
  if (!value.is_string()) {
    hint = nearest_or_all("", words);
    return "needs a word, not " + describe(value);
  }
  const std::string kebab = to_kebab(value.as_string());
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (to_kebab(words[i]) == kebab) return index = i, std::string();
  }
  hint = nearest_or_all(value.as_string(), words);
  return "has the unknown value " + quoted(value.as_string());
}

std::string to_json(std::int64_t value) { return std::to_string(value); }
std::string to_json(double value) { return shortest(value); }
std::string to_json(bool value) { return value ? "true" : "false"; }

std::string to_json(std::string_view value) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += "\\u00";
      result += kHex[static_cast<unsigned char>(c) >> 4];
      result += kHex[static_cast<unsigned char>(c) & 15];
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string to_json(const std::vector<std::string>& value) {
  std::string result = "[";
  for (const std::string& text : value) {
    if (result.size() > 1) result += ", ";
    result += to_json(std::string_view(text));
  }
  return result + "]";
}

std::string to_json(const std::map<std::string, std::string>& value) {
  std::string result = "{";
  for (const auto& [key, text] : value) {
    if (result.size() > 1) result += ", ";
    result += to_json(std::string_view(key)) + ": " + to_json(std::string_view(text));
  }
  return result + "}";
}

}  // namespace membill
