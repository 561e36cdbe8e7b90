// Every preset of data/models: its total, its active part, and the published total where the two agree.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "facts.h"
#include "io/json_reader.h"
#include "io/model_source.h"
#include "membill/vision_part.h"
#include "support/catch.h"
#include "support/places.h"

namespace membill::census_test {

namespace {

const std::filesystem::path kFolder = test::in_source("data/models");

Json read(const std::filesystem::path& path) {
  std::ifstream file(path);
  INFO(path.string());
  REQUIRE(file.good());
  return Json::parse(file);
}

// The preset; a wrapper's names the model type of its text part.
Json preset(const std::string& short_name) {
  Json found = read(kFolder / (short_name + ".json"));
  const Json& config = found.at("config");
  const std::string type = config.at("model_type").get<std::string>();
  if (find_family(type) == nullptr) {
    const Json defaults = read(test::in_source("data/defaults/") + type + ".json");
    const bool says = config.contains("text_config") && config.at("text_config").contains("model_type");
    found["part"] = says ? config.at("text_config").at("model_type") : defaults.at("parts").at("text_config");
  }
  return found;
}

}  // namespace

TEST_CASE("presets count as published") {
  for (const Json& fact : read_facts("presets.jsonl")) {
    const Json found = preset(fact.at("short").get<std::string>());
    INFO(fact.dump());
    CHECK(found.at("name") == fact.at("name"));
    const ModelSpec spec = describe(resolved_config(found));
    CHECK(spec.parameters() == fact.at("parameters").get<std::int64_t>());
    if (!fact.at("published").is_null()) {
      CHECK(spec.parameters() + fact.at("score_buffers").get<std::int64_t>() ==
            fact.at("published").get<std::int64_t>());
    }
    if (!fact.at("active").is_null()) {
      CHECK(spec.active_parameters() == fact.at("active").get<std::int64_t>());
    } else {
      CHECK(spec.active_parameters() == spec.parameters());
    }
  }
}

TEST_CASE("presets state their sources") {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    ++count;
    const std::string stem = entry.path().stem().string();
    const Json found = preset(stem);
    CHECK(found.at("short") == stem);
    CHECK_FALSE(found.at("source").get<std::string>().empty());
    if (found.contains("published")) CHECK_FALSE(found.at("published").at("source").get<std::string>().empty());
    const Json& type = found.contains("part") ? found.at("part") : found.at("config").at("model_type");
    CHECK(find_family(type.get<std::string>()) != nullptr);
    CHECK(found.contains("aliases") == found.contains("aliases_source"));
  }
  CHECK(count >= 230);
}

TEST_CASE("every preset has a fact of its total") {
  std::set<std::string> facts;
  for (const Json& fact : read_facts("presets.jsonl")) facts.insert(fact.at("short").get<std::string>());
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    INFO(entry.path().string());
    CHECK(facts.contains(entry.path().stem().string()));
  }
}

// The text part as facts.h describes it, and the tower with its projector.
TEST_CASE("presets with a vision part count as published, whole") {
  int whole = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const Json found = preset(entry.path().stem().string());
    if (!found.contains("part") || !found.contains("published") || found.at("published").contains("differs")) continue;
    INFO(entry.path().string());
    const Value config = io::parse_json(found.at("config").dump(), "config");
    const ModelSpec spec = io::describe_model(io::load_config(config, "config", "config"));
    if (!is_vision_part(spec.sections.back())) continue;
    ++whole;
    CHECK(spec.parameters() == found.at("published").at("parameters").get<std::int64_t>());
    CHECK(spec.not_counted.empty());
    for (const TensorSpec& tensor : spec.sections.back().kinds.at(0).tensors) CHECK(tensor.elements() > 0);
  }
  CHECK(whole >= 20);
}

// Two presets may share a hub name's last part only where one of them is called so.
TEST_CASE("an alias names one preset") {
  std::map<std::string, std::string> owners;
  const auto claim = [&](const std::string& hub_id, const std::string& owner) {
    const std::string name = to_lower(hub_id.substr(hub_id.find('/') + 1));
    INFO(hub_id << " of " << owner);
    const auto [found, added] = owners.emplace(name, owner);
    CHECK(found->second == owner);
  };
  std::vector<Json> presets;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) presets.push_back(read(entry.path()));
  for (const Json& found : presets) claim(found.at("name").get<std::string>(), found.at("short").get<std::string>());
  for (const Json& found : presets) {
    if (!found.contains("aliases")) continue;
    for (const auto& [alias, changes] : found.at("aliases").items()) {
      claim(alias, found.at("short").get<std::string>());
      for (const auto& [key, value] : changes.items()) CHECK(value != found.at("config").value(key, Json("absent")));
    }
  }
}

}  // namespace membill::census_test
