// The published schema and the renderer agree: the schema's own words are checked on real output.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "report/formats.h"
#include "report/sample_report.h"
#include "report/schema_name.h"
#include "support/catch.h"
#include "support/places.h"

namespace {

using namespace membill;
using Json = nlohmann::json;

// The part of JSON Schema 2020-12 that the report's schema uses. Unknown words of a schema are failures too.
class Validator {
 public:
  explicit Validator(const Json& root) : root_(root) {}

  std::vector<std::string> check(const Json& value) {
    failures_.clear();
    check(value, root_, "");
    return failures_;
  }

 private:
  void fail(const std::string& path, const std::string& what) { failures_.push_back(path + ": " + what); }

  static bool is_type(const Json& value, const std::string& type) {
    if (type == "null") return value.is_null();
    if (type == "integer") return value.is_number_integer();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "array") return value.is_array();
    return type == "object" && value.is_object();
  }

  void check_type(const Json& value, const Json& type, const std::string& path) {
    const std::vector<std::string> types =
        type.is_array() ? type.get<std::vector<std::string>>() : std::vector<std::string>{type.get<std::string>()};
    for (const std::string& one : types) {
      if (is_type(value, one)) return;
    }
    fail(path, "is no " + type.dump());
  }

  void check_members(const Json& value, const Json& schema, const std::string& path) {
    for (const Json& key : schema.value("required", Json::array())) {
      if (!value.contains(key.get<std::string>())) fail(path, "lacks " + key.dump());
    }
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [key, member] : value.items()) {
      if (properties.contains(key)) {
        check(member, properties[key], path + "." + key);
      } else if (schema.contains("additionalProperties")) {
        const Json& rule = schema["additionalProperties"];
        if (rule == false) fail(path, "has the unknown key " + key);
        if (rule.is_object()) check(member, rule, path + "." + key);
      }
    }
  }

  void check(const Json& value, const Json& schema, const std::string& path) {
    for (const auto& [word, rule] : schema.items()) {
      if (word == "$ref") {
        check(value, root_.at(Json::json_pointer(rule.get<std::string>().substr(1))), path);
      } else if (word == "type") {
        check_type(value, rule, path);
      } else if (word == "const") {
        if (value != rule) fail(path, "is not " + rule.dump());
      } else if (word == "enum") {
        if (std::find(rule.begin(), rule.end(), value) == rule.end()) fail(path, "is none of " + rule.dump());
      } else if (word == "minimum") {
        if (value.is_number() && value < rule) fail(path, "is below " + rule.dump());
      } else if (word == "pattern") {
        if (!std::regex_search(value.get<std::string>(), std::regex(rule.get<std::string>())))
          fail(path, "has another form");
      } else if (word == "items") {
        for (const Json& item : value) check(item, rule, path + "[]");
      } else if (std::string(" $schema $id $defs title description properties required additionalProperties ")
                     .find(" " + word + " ") == std::string::npos) {
        fail(path, "the schema has the unknown word " + word);
      }
    }
    if (value.is_object()) check_members(value, schema, path);
  }

  const Json& root_;
  std::vector<std::string> failures_;
};

Json load_schema() {
  std::ifstream file(test::in_source("data/schema/report.schema.json"));
  return Json::parse(file);
}

TEST_CASE("every sample report is valid against the published schema") {
  const Json schema = load_schema();
  for (const Report& sample : {test::plain_report(), test::full_report(), test::unknown_report()}) {
    const std::vector<std::string> failures = Validator(schema).check(Json::parse(report::render_json(sample, {})));
    CHECK(failures == std::vector<std::string>());
  }
}

TEST_CASE("the schema names the version that the renderer writes") {
  CHECK(load_schema()["properties"]["schema"]["const"] == report::kReportSchema);
}

TEST_CASE("the schema refuses a missing key, a surplus key and a wrong type") {
  const Json schema = load_schema();
  const Json good = Json::parse(report::render_json(test::full_report(), {}));
  Json lacking = good;
  lacking.erase("verdict");
  CHECK(Validator(schema).check(lacking).size() == 1);
  Json surplus = good;
  surplus["totals"]["requested"]["exact"] = 7;
  CHECK(Validator(schema).check(surplus).size() == 1);
  Json wrong = good;
  wrong["items"][0]["bytes"] = "many";
  CHECK(Validator(schema).check(wrong).size() == 1);
}

}  // namespace
