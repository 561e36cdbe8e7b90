#include "report/object_reader.h"

#include <algorithm>

namespace membill::report {

std::string ObjectReader::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void ObjectReader::complain(std::string_view key, std::string message, const std::vector<std::string_view>& words) {
  std::string hint;
  for (const std::string_view word : words) hint.append(hint.empty() ? "one of " : ", ").append(word);
  problems_.add({file_, path_of(key), std::move(message), std::move(hint)});
}

const Value* ObjectReader::find_any(std::string_view key) {
  known_.push_back(key);
  const Value* member = value_.find(key);
  if (member == nullptr) complain(key, "is missing");
  return member;
}

const Value* ObjectReader::find(std::string_view key, Value::Kind kind) {
  const Value* member = find_any(key);
  if (member == nullptr || member->kind() == kind) return member;
  complain(key, "needs a " + std::string(Value::kind_name(kind)));
  return nullptr;
}

void ObjectReader::read(std::string_view key, std::string& result) {
  if (const Value* member = find(key, Value::Kind::string)) result = member->as_string();
}

void ObjectReader::read(std::string_view key, bool& result) {
  if (const Value* member = find(key, Value::Kind::boolean)) result = member->as_bool();
}

void ObjectReader::read(std::string_view key, std::int64_t& result) {
  if (const Value* member = find(key, Value::Kind::integer)) result = member->as_int();
}

void ObjectReader::read(std::string_view key, std::optional<std::string>& result) {
  const Value* member = find_any(key);
  if (member == nullptr || member->is_null()) return;
  if (member->is_string()) {
    result = member->as_string();
  } else {
    complain(key, "needs text or null");
  }
}

void ObjectReader::read(std::string_view key, std::optional<std::int64_t>& result) {
  const Value* member = find_any(key);
  if (member == nullptr || member->is_null()) return;
  if (member->is_int()) {
    result = member->as_int();
  } else {
    complain(key, "needs a whole number or null");
  }
}

void ObjectReader::texts(std::string_view key, std::vector<std::string>& result) {
  const Value* member = find(key, Value::Kind::list);
  if (member == nullptr) return;
  for (const Value& item : member->items()) {
    if (!item.is_string()) {
      complain(key, "needs a list of texts");
      return;
    }
    result.push_back(item.as_string());
  }
}

void ObjectReader::integers(std::string_view key, std::vector<std::int64_t>& result) {
  const Value* member = find(key, Value::Kind::list);
  if (member == nullptr) return;
  for (const Value& item : member->items()) {
    if (!item.is_int()) {
      complain(key, "needs a list of whole numbers");
      return;
    }
    result.push_back(item.as_int());
  }
}

void ObjectReader::counts(std::string_view key, std::vector<std::pair<std::string, std::int64_t>>& result) {
  const Value* member = map(key);
  if (member == nullptr) return;
  for (const auto& [name, value] : member->entries()) {
    if (value.is_int()) {
      result.emplace_back(name, value.as_int());
    } else {
      complain(std::string(key) + "." + name, "needs a whole number");
    }
  }
}

const Value* ObjectReader::map(std::string_view key) { return find(key, Value::Kind::map); }

void ObjectReader::refuse_others() {
  for (const auto& [key, value] : value_.entries()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    problems_.add({file_, path_of(key), "is not a key of a report", std::string(nearest_word(key, known_))});
  }
}

}  // namespace membill::report
