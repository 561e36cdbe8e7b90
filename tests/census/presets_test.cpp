// Every preset of data/models: its total, its active part, and the published total where the two agree.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "facts.h"
#include "support/catch.h"
#include "support/places.h"

namespace membill::census_test {

namespace {

const std::filesystem::path kFolder = test::in_source("data/models");

Json preset(const std::string& short_name) {
  std::ifstream file(kFolder / (short_name + ".json"));
  INFO(short_name);
  REQUIRE(file.good());
  return Json::parse(file);
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
    CHECK(find_family(found.at("config").at("model_type").get<std::string>()) != nullptr);
  }
  CHECK(count >= 146);
}

}  // namespace membill::census_test
