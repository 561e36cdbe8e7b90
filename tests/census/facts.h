// Facts of tests/data/census, and model specs made from their configs.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "membill/catalog.h"

namespace membill::census_test {

using Json = nlohmann::ordered_json;

// The lines of tests/data/census/<name> after the first, which states the source.
[[nodiscard]] std::vector<Json> read_facts(const std::string& name);

[[nodiscard]] Value to_value(const Json& json);

// The config of a fact with its class defaults: a wrapper's text part ("part": its model type) with the wrapper's tying.
[[nodiscard]] Value resolved_config(const Json& fact);

// The spec of a resolved config. Fails the test when its type is unknown or the config has problems.
[[nodiscard]] ModelSpec describe(const Value& config);

// A tensor's name with '*' for every number between dots, and its shape.
using TensorKey = std::pair<std::string, std::vector<std::int64_t>>;
struct Count {
  TensorKey tensor;
  std::int64_t layers = 0;
  bool operator==(const Count&) const = default;
};

// The census in the order in which layers first hold a tensor, as the facts list it.
[[nodiscard]] std::vector<Count> census_of(const ModelSpec& spec, bool buffers);
// "tensors" or "buffer_tensors" of a fact.
[[nodiscard]] std::vector<Count> counts_of(const Json& rows);
// Names of modules that are linears, with '*' for numbers.
[[nodiscard]] std::vector<std::string> linear_modules_of(const ModelSpec& spec);

}  // namespace membill::census_test
