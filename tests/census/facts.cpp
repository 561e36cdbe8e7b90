#include "facts.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>

#include "support/catch.h"
#include "support/places.h"

namespace membill::census_test {

namespace {

Json read_json(const std::string& path) {
  std::ifstream file(path);
  INFO(path);
  REQUIRE(file.good());
  return Json::parse(file);
}

std::string with_stars(const std::string& name) {
  std::string result, part;
  const auto flush = [&] {
    const bool number =
        !part.empty() && std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c); });
    result += number ? "*" : part;
    part.clear();
  };
  for (const char c : name) {
    if (c == '.') {
      flush();
      result += '.';
    } else {
      part += c;
    }
  }
  flush();
  return result;
}

void count_kind(std::vector<Count>& counts, const LayerKind& kind, bool buffers) {
  for (const TensorSpec& tensor : kind.tensors) {
    if (tensor.buffer != buffers) continue;
    const TensorKey key{with_stars(tensor.name), tensor.shape};
    const auto found =
        std::find_if(counts.begin(), counts.end(), [&](const Count& count) { return count.tensor == key; });
    if (found == counts.end()) {
      counts.push_back({key, 1});
    } else {
      ++found->layers;
    }
  }
}

}  // namespace

std::vector<Json> read_facts(const std::string& name) {
  std::ifstream file(test::in_source("tests/data/census/") + name);
  REQUIRE(file.good());
  std::vector<Json> facts;
  std::string line;
  std::getline(file, line);
  REQUIRE(Json::parse(line).contains("source"));
  while (std::getline(file, line)) facts.push_back(Json::parse(line));
  REQUIRE_FALSE(facts.empty());
  return facts;
}

Value to_value(const Json& json) {
  if (json.is_boolean()) return Value::of(json.get<bool>());
  if (json.is_number_integer()) return Value::of(json.get<std::int64_t>());
  if (json.is_number()) return Value::of(json.get<double>());
  if (json.is_string()) return Value::of(json.get<std::string>());
  if (json.is_array()) {
    Value list = Value::make_list();
    for (const Json& item : json) list.items().push_back(to_value(item));
    return list;
  }
  if (!json.is_object()) return {};
  Value map = Value::make_map();
  for (const auto& [key, item] : json.items()) map.set(key, to_value(item));
  return map;
}

Value resolved_config(const Json& fact) {
  const std::string folder = test::in_source("data/defaults/");
  Json config = fact.at("config");
  if (fact.contains("part")) {
    const Json wrapper = config;
    const Json defaults = read_json(folder + wrapper.at("model_type").get<std::string>() + ".json");
    if (wrapper.contains("text_config")) config = wrapper.at("text_config");
    config["model_type"] = fact.at("part");
    config["tie_word_embeddings"] = wrapper.contains("tie_word_embeddings")
                                        ? wrapper.at("tie_word_embeddings")
                                        : defaults.at("defaults").at("tie_word_embeddings");
  }
  const Json defaults = read_json(folder + config.at("model_type").get<std::string>() + ".json");
  return with_class_defaults(to_value(config), to_value(defaults));
}

ModelSpec describe(const Value& config) {
  const Family* family = find_family(config.find("model_type")->as_string());
  REQUIRE(family != nullptr);
  Problems problems;
  ModelSpec spec = family->describe(config, problems);
  for (const Problem& problem : problems.list()) UNSCOPED_INFO(problem.key + ": " + problem.message);
  REQUIRE(problems.empty());
  return spec;
}

std::vector<Count> census_of(const ModelSpec& spec, bool buffers) {
  std::vector<Count> counts;
  for (const Section& section : spec.sections) {
    if (section.layer_kinds.empty()) count_kind(counts, section.kinds.front(), buffers);
    for (const std::int32_t kind : section.layer_kinds) {
      count_kind(counts, section.kinds[static_cast<std::size_t>(kind)], buffers);
    }
  }
  return counts;
}

std::vector<Count> counts_of(const Json& rows) {
  std::vector<Count> counts;
  for (const Json& row : rows) {
    counts.push_back(
        {{row[0].get<std::string>(), row[1].get<std::vector<std::int64_t>>()}, row[2].get<std::int64_t>()});
  }
  return counts;
}

std::vector<std::string> linear_modules_of(const ModelSpec& spec) {
  std::set<std::string> names;
  for (const Section& section : spec.sections) {
    for (const LayerKind& kind : section.kinds) {
      for (const TensorSpec& tensor : kind.tensors) {
        const bool linear = tensor.module == ModuleKind::linear || tensor.module == ModuleKind::conv1d;
        if (linear) names.insert(with_stars(tensor.module_name()));
      }
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace membill::census_test
