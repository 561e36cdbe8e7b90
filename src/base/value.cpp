#include "membill/value.h"

#include <utility>

namespace membill {

Value Value::of(bool b) {
  Value v;
  v.kind_ = Kind::boolean;
  v.integer_ = b ? 1 : 0;
  return v;
}

Value Value::of(int n) { return of(static_cast<std::int64_t>(n)); }

Value Value::of(std::int64_t n) {
  Value v;
  v.kind_ = Kind::integer;
  v.integer_ = n;
  return v;
}

Value Value::of(double x, std::string written) {
  Value v;
  v.kind_ = Kind::real;
  v.real_ = x;
  v.text_ = std::move(written);
  return v;
}

Value Value::of(std::string text) {
  Value v;
  v.kind_ = Kind::string;
  v.text_ = std::move(text);
  return v;
}

Value Value::of(const char* text) { return of(std::string(text)); }

Value Value::make_list(std::vector<Value> items) {
  Value v;
  v.kind_ = Kind::list;
  v.items_ = std::move(items);
  return v;
}

Value Value::make_map(std::vector<Entry> entries) {
  Value v;
  v.kind_ = Kind::map;
  v.entries_ = std::move(entries);
  return v;
}

const Value* Value::find(std::string_view key) const {
  for (const Entry& entry : entries_) {
    if (entry.first == key) return &entry.second;
  }
  return nullptr;
}

void Value::set(std::string_view key, Value value) {
  for (Entry& entry : entries_) {
    if (entry.first == key) {
      entry.second = std::move(value);
      return;
    }
  }
  entries_.emplace_back(std::string(key), std::move(value));
}

std::string_view Value::kind_name(Kind kind) {
  switch (kind) {
    case Kind::null: return "null";
    case Kind::boolean: return "true or false";
    case Kind::integer: return "whole number";
    case Kind::real: return "number";
    case Kind::string: return "text";
    case Kind::list: return "list";
    case Kind::map: return "map";
  }
  return "";
}

}  // namespace membill
