#include "catalog/families/config_reader.h"

#include <utility>

namespace membill::census {

namespace {

const Value* find_with_value(const Value& config, std::string_view key) {
  const Value* value = config.find(key);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

std::string must_be(std::string_view what, const Value& value) {
  const bool countable = value.is_number() || value.is_list() || value.is_map();
  return "must be " + std::string(what) + (countable ? ", not a " : ", not ") +
         std::string(Value::kind_name(value.kind()));
}

}  // namespace

const Value* ConfigReader::find(std::string_view key) const {
  if (const Value* value = find_with_value(config_, key)) return value;
  for (const Spelling& row : spellings_) {
    if (row.key != key) continue;
    if (const Value* value = find_with_value(config_, row.spelling)) return value;
  }
  return nullptr;
}

bool ConfigReader::holds(std::string_view spelling) const { return find_with_value(config_, spelling) != nullptr; }

std::string ConfigReader::written_key(std::string_view key) const {
  for (const Spelling& row : spellings_) {
    if (row.key == key && find_with_value(config_, key) == nullptr && config_.find(row.spelling) != nullptr) {
      return prefix_ + std::string(row.spelling);
    }
  }
  return prefix_ + std::string(key);
}

void ConfigReader::problem(std::string_view key, std::string message, std::string hint) const {
  Problem found;
  found.key = written_key(key);
  found.message = std::move(message);
  found.hint = std::move(hint);
  problems_.add(std::move(found));
}

std::int64_t ConfigReader::whole(std::string_view key, const Value& value, std::int64_t least, std::int64_t most,
                                 std::int64_t harmless) const {
  if (!value.is_int()) {
    problem(key, must_be("a whole number", value));
    return harmless;
  }
  const std::int64_t number = value.as_int();
  if (number < least) {
    problem(key, "must be at least " + std::to_string(least) + ", not " + std::to_string(number));
    return harmless;
  }
  if (number > most) {
    problem(key, "is larger than any model's (at most " + std::to_string(most) + ")");
    return harmless;
  }
  return number;
}

std::int64_t ConfigReader::size(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) {
    problem(key, "is missing");
    return 1;
  }
  return whole(key, *value, 1, kLargestCount, 1);
}

std::int64_t ConfigReader::size_or(std::string_view key, std::int64_t fallback) const {
  const Value* value = find(key);
  return value == nullptr ? fallback : whole(key, *value, 1, kLargestCount, 1);
}

std::int64_t ConfigReader::count_or(std::string_view key, std::int64_t fallback) const {
  const Value* value = find(key);
  return value == nullptr ? fallback : whole(key, *value, 0, kLargestCount, 0);
}

std::optional<std::int64_t> ConfigReader::optional_size(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  return whole(key, *value, 1, kLargestCount, 1);
}

std::int64_t ConfigReader::listed(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) {
    problem(key, "is missing");
    return 1;
  }
  return whole(key, *value, 1, kMostListed, 1);
}

bool ConfigReader::flag(std::string_view key, bool fallback) const {
  const Value* value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_bool()) return value->as_bool();
  problem(key, must_be("true or false", *value));
  return fallback;
}

std::optional<double> ConfigReader::optional_real(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->as_real();
  problem(key, must_be("a number", *value));
  return std::nullopt;
}

double ConfigReader::real_or(std::string_view key, double fallback) const {
  return optional_real(key).value_or(fallback);
}

double ConfigReader::dropout(std::string_view key, double fallback) const {
  const double share = real_or(key, fallback);
  if (share >= 0.0 && share <= 1.0) return share;
  problem(key, "must lie between 0 and 1");
  return fallback;
}

std::string ConfigReader::word(std::string_view key, std::string_view fallback) const {
  const Value* value = find(key);
  if (value == nullptr) return std::string(fallback);
  if (value->is_string()) return value->as_string();
  problem(key, must_be("text", *value));
  return std::string(fallback);
}

std::vector<std::int64_t> ConfigReader::counts(std::string_view key) const {
  std::vector<std::int64_t> result;
  const Value* value = find(key);
  if (value == nullptr) return result;
  if (!value->is_list()) {
    problem(key, must_be("a list of whole numbers", *value));
    return result;
  }
  for (const Value& item : value->items()) result.push_back(whole(key, item, 0, kLargestCount, 0));
  return result;
}

std::vector<std::string> ConfigReader::words(std::string_view key) const {
  std::vector<std::string> result;
  const Value* value = find(key);
  if (value == nullptr) return result;
  if (!value->is_list()) {
    problem(key, must_be("a list of words", *value));
    return result;
  }
  for (const Value& item : value->items()) {
    if (!item.is_string()) {
      problem(key, must_be("a list of words", item));
      return {};
    }
    result.push_back(item.as_string());
  }
  return result;
}

ConfigReader ConfigReader::inner(std::string_view key) const {
  static const Value kNothing = Value::make_map();
  const Value* value = find(key);
  if (value != nullptr && !value->is_map()) {
    problem(key, must_be("a map", *value));
    value = nullptr;
  }
  ConfigReader reader(value == nullptr ? kNothing : *value, problems_, spellings_);
  reader.prefix_ = prefix_ + std::string(key) + ".";
  return reader;
}

}  // namespace membill::census
