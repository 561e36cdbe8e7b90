// The schemas of data/schema and the readers know the same keys.
#include <algorithm>
#include <set>
#include <string>

#include "errors.h"
#include "io/embedded.h"
#include "io/hardware_source.h"
#include "io/job_file.h"
#include "io/json_reader.h"
#include "membill/catalog.h"
#include "support/catch.h"

namespace membill::io_test {
namespace {

using Keys = std::set<std::string>;

Value schema(const std::string& name) {
  const io::EmbeddedFile* file = io::find_embedded("schema", name + ".schema");
  REQUIRE(file != nullptr);
  return io::parse_json(file->text, name);
}

Keys keys_of(const Value& map) {
  Keys keys;
  for (const Value::Entry& entry : map.entries()) keys.insert(entry.first);
  return keys;
}

// Dotted keys of a schema's properties, of maps inside of it too.
void collect(const Value& schema, const std::string& prefix, Keys& keys) {
  if (const Value* properties = schema.find("properties")) {
    for (const auto& [key, inner] : properties->entries()) {
      const bool is_leaf = inner.find("properties") == nullptr;
      if (is_leaf) keys.insert(prefix + key);
      collect(inner, prefix + key + ".", keys);
    }
  }
  if (const Value* choices = schema.find("anyOf")) {
    for (const Value& choice : choices->items()) collect(choice, prefix, keys);
  }
}

void check_files(const std::string& folder, const std::string& schema_name) {
  const Value rules = schema(schema_name);
  const Keys known = keys_of(*rules.find("properties"));
  for (const io::EmbeddedFile& file : io::embedded_files(folder)) {
    INFO(file.name);
    const Keys keys = keys_of(io::parse_json(file.text, std::string(file.name)));
    CHECK(std::includes(known.begin(), known.end(), keys.begin(), keys.end()));
    for (const Value& required : rules.find("required")->items()) CHECK(keys.count(required.as_string()) == 1);
  }
}

}  // namespace

TEST_CASE("presets keep to their schemas") {
  check_files("hardware", "hardware");
  check_files("models", "model");
}

TEST_CASE("the reader of a card knows the keys of its schema") {
  for (const std::string& key : keys_of(*schema("hardware").find("properties"))) {
    const std::string file = "{\"" + key + "\": 0.5}";
    for (const std::string& line : errors_of([&] { return io::parse_gpu({"x.json", file}, "x"); })) {
      INFO(line);
      CHECK_FALSE(line.ends_with("is no known key"));
    }
  }
}

TEST_CASE("the schema of a job file lists the fields of the plan") {
  Keys listed;
  collect(schema("job"), "", listed);
  std::erase_if(listed, [](const std::string& key) {
    return key == "model" || key == "teacher.config" || key.starts_with("model.") || key.starts_with("hardware.");
  });
  Keys fields;
  for (const PlanFieldRow& row : plan_fields()) fields.insert(row.key);
  CHECK(listed == fields);
}

TEST_CASE("the reader of a job file knows the keys of its schema") {
  const Value rules = schema("job");
  for (const std::string& key : keys_of(*rules.find("properties")->find("hardware")->find("properties"))) {
    Problems problems;
    (void)io::split_job(io::parse_json("{\"hardware\": {\"" + key + "\": null}}", "x"), "x", "", problems);
    CHECK(problems.empty());
  }
}

}  // namespace membill::io_test
