#include "report/plan_tree.h"

#include <nlohmann/json.hpp>

#include "report/text.h"

namespace membill::report {
namespace {

using Json = nlohmann::ordered_json;

void insert(Json& tree, std::string_view key, Json leaf) {
  if (leaf.is_object() && !leaf.empty()) {
    for (const auto& [name, value] : leaf.items()) insert(tree, std::string(key) + "." + name, value);
    return;
  }
  Json* node = &tree;
  for (std::size_t dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
    node = &(*node)[std::string(key.substr(0, dot))];
    key.remove_prefix(dot + 1);
  }
  (*node)[std::string(key)] = std::move(leaf);
}

void write_json(JsonWriter& out, const Json& json, bool flat) {
  if (json.is_object()) {
    out.begin_object(flat);
    for (const auto& [key, value] : json.items()) {
      out.key(key);
      write_json(out, value, flat);
    }
    out.end_object();
  } else if (json.is_array()) {
    out.begin_array(true);
    for (const Json& element : json) write_json(out, element, true);
    out.end_array();
  } else if (json.is_string()) {
    out.text(json.get_ref<const std::string&>());
  } else {
    out.raw(json.dump());
  }
}

Json to_json(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::null: return nullptr;
    case Value::Kind::boolean: return value.as_bool();
    case Value::Kind::integer: return value.as_int();
    case Value::Kind::real: return value.as_real();
    case Value::Kind::string: return value.as_string();
    case Value::Kind::list: {
      Json list = Json::array();
      for (const Value& item : value.items()) list.push_back(to_json(item));
      return list;
    }
    case Value::Kind::map: {
      Json map = Json::object();
      for (const auto& [key, entry] : value.entries()) map[key] = to_json(entry);
      return map;
    }
  }
  return nullptr;
}

void flatten(const Value& value, const std::string& key, std::vector<PlanField>& fields) {
  if (value.is_map() && (key.empty() || !value.entries().empty())) {
    const std::string prefix = key.empty() ? key : key + ".";
    for (const auto& [name, entry] : value.entries()) flatten(entry, prefix + name, fields);
    return;
  }
  fields.push_back({key, to_json(value).dump()});
}

}  // namespace

void write_plan(JsonWriter& out, const std::vector<PlanField>& plan) {
  Json tree = Json::object();
  for (const PlanField& field : plan) insert(tree, field.key, Json::parse(valid_utf8(field.json)));
  write_json(out, tree, false);
}

std::vector<PlanField> read_plan_fields(const Value& plan) {
  std::vector<PlanField> fields;
  flatten(plan, {}, fields);
  return fields;
}

}  // namespace membill::report
