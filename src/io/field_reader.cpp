#include "io/field_reader.h"

#include <algorithm>
#include <utility>

namespace membill::io {

FieldReader::FieldReader(const Value& value, std::string file, std::string prefix, Problems& problems)
    : map_(value), file_(std::move(file)), prefix_(std::move(prefix)), problems_(problems) {
  if (!value.is_map()) {
    problems_.add(Problem{file_, prefix_, "needs a map, not " + std::string(Value::kind_name(value.kind())), ""});
  }
}

std::string FieldReader::dotted(std::string_view key) const {
  if (key.empty() || prefix_.empty()) return prefix_ + std::string(key);
  return prefix_ + "." + std::string(key);
}

void FieldReader::problem(std::string_view key, std::string message, std::string hint) {
  problems_.add(Problem{file_, dotted(key), std::move(message), std::move(hint)});
}

void FieldReader::wrong_type(std::string_view key, const Value& found, std::string_view wanted) {
  std::string what(Value::kind_name(found.kind()));
  if (found.is_string()) what += " " + quoted(found.as_string());
  problem(key, "needs " + std::string(wanted) + ", not " + what);
}

const Value* FieldReader::value(std::string_view key) {
  asked_.push_back(key);
  return map_.find(key);
}

const Value* FieldReader::present(std::string_view key) {
  const Value* found = value(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

void FieldReader::require(std::string_view key) {
  if (map_.is_map() && present(key) == nullptr) problem(key, "is missing");
}

std::optional<std::string> FieldReader::text(std::string_view key) {
  const Value* found = present(key);
  if (found == nullptr) return std::nullopt;
  if (found->is_string()) return found->as_string();
  wrong_type(key, *found, "text");
  return std::nullopt;
}

std::optional<std::int64_t> FieldReader::count(std::string_view key, std::int64_t least) {
  const Value* found = present(key);
  if (found == nullptr) return std::nullopt;
  const std::string wanted = "a whole number of at least " + std::to_string(least);
  if (!found->is_int()) {
    wrong_type(key, *found, wanted);
  } else if (found->as_int() < least) {
    problem(key, "needs " + wanted + ", not " + std::to_string(found->as_int()));
  } else {
    return found->as_int();
  }
  return std::nullopt;
}

std::optional<bool> FieldReader::flag(std::string_view key) {
  const Value* found = present(key);
  if (found == nullptr) return std::nullopt;
  if (found->is_bool()) return found->as_bool();
  wrong_type(key, *found, "true or false");
  return std::nullopt;
}

std::optional<double> FieldReader::real(std::string_view key) {
  const Value* found = present(key);
  if (found == nullptr) return std::nullopt;
  if (found->is_number()) return found->as_real();
  wrong_type(key, *found, "a number");
  return std::nullopt;
}

std::optional<Bytes> FieldReader::size(std::string_view key) {
  const Value* found = present(key);
  if (found == nullptr) return std::nullopt;
  if (found->is_int() && found->as_int() == 0) return Bytes(0);
  if (!found->is_string() && !found->is_number()) {
    wrong_type(key, *found, "a size such as \"80 GiB\"");
    return std::nullopt;
  }
  const std::string written = found->is_int() ? std::to_string(found->as_int()) : found->as_string();
  Bytes result;
  std::string why;
  if (parse_bytes(written, result, why)) return result;
  problem(key, quoted(written) + " " + why);
  return std::nullopt;
}

std::optional<Bytes> FieldReader::gib(std::string_view key) {
  const Value* found = present(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number()) {
    wrong_type(key, *found, "a number of GiB");
    return std::nullopt;
  }
  const std::string written = found->is_int() ? std::to_string(found->as_int()) : found->written();
  Bytes result;
  std::string why;
  if (parse_bytes(written + "GiB", result, why)) return result;
  problem(key, why);
  return std::nullopt;
}

std::optional<std::int64_t> FieldReader::parameters(std::string_view key) {
  const Value* found = present(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string() && !found->is_number()) {
    wrong_type(key, *found, "a number of parameters such as 7e9");
    return std::nullopt;
  }
  const std::string written = found->is_int() ? std::to_string(found->as_int()) : found->as_string();
  std::int64_t result = 0;
  std::string why;
  if (!parse_parameters(written, result, why)) {
    problem(key, quoted(written) + " " + why);
  } else if (result < 1) {
    problem(key, "needs at least 1");
  } else {
    return result;
  }
  return std::nullopt;
}

std::vector<std::string> FieldReader::texts(std::string_view key) {
  const Value* found = present(key);
  if (found == nullptr) return {};
  std::vector<std::string> result;
  const bool all_text = found->is_list() && std::all_of(found->items().begin(), found->items().end(),
                                                        [](const Value& item) { return item.is_string(); });
  if (!all_text) {
    wrong_type(key, *found, "a list of texts");
    return {};
  }
  for (const Value& item : found->items()) result.push_back(item.as_string());
  return result;
}

void FieldReader::finish() {
  for (const Value::Entry& entry : map_.entries()) {
    if (std::find(asked_.begin(), asked_.end(), entry.first) != asked_.end()) continue;
    problem(entry.first, "is no known key", std::string(nearest_word(entry.first, asked_)));
  }
}

}  // namespace membill::io
