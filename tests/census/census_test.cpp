// Every tensor, total, tie, buffer and linear of the modelled types, exactly as the library builds them.
#include <algorithm>
#include <numeric>
#include <set>

#include "facts.h"
#include "support/catch.h"

namespace membill::census_test {

namespace {

std::string label_of(const Json& fact) {
  return fact.contains("name") ? fact.at("name").get<std::string>() : fact.at("config").dump();
}

std::string text_of(const Count& count) {
  std::string text = count.tensor.first + " [";
  for (const std::int64_t extent : count.tensor.second) text += std::to_string(extent) + " ";
  return text + "] x " + std::to_string(count.layers);
}

// Says what differs, tensor by tensor.
std::string difference(const std::vector<Count>& expected, const std::vector<Count>& found) {
  std::string text;
  for (const Count& count : expected) {
    if (std::find(found.begin(), found.end(), count) == found.end()) text += "missing: " + text_of(count) + "\n";
  }
  for (const Count& count : found) {
    if (std::find(expected.begin(), expected.end(), count) == expected.end())
      text += "too much: " + text_of(count) + "\n";
  }
  if (text.empty() && expected != found) text = "order differs\n";
  return text;
}

std::vector<Count> sorted(std::vector<Count> counts) {
  std::sort(counts.begin(), counts.end(), [](const Count& a, const Count& b) { return a.tensor < b.tensor; });
  return counts;
}

// lm_head is a linear module of a tied model too, but owns no tensor in the census.
std::vector<std::string> linears_with_tensors(const Json& fact) {
  std::set<std::string> owners;
  for (const Json& row : fact.at("tensors")) {
    const auto name = row[0].get<std::string>();
    owners.insert(name.substr(0, name.rfind('.')));
  }
  std::set<std::string> names;
  for (const Json& row : fact.at("linear_modules")) {
    if (owners.count(row[0].get<std::string>()) > 0) names.insert(row[0].get<std::string>());
  }
  return {names.begin(), names.end()};
}

// GPT-2's conv1d modules are linears to PEFT, but the facts of that class list torch's linears only.
bool lists_conv1d(const Json& fact) {
  return fact.at("config").at("model_type") != "gpt2" || fact.at("linear_modules").size() > 1;
}

void check_tensors(const Json& fact, const ModelSpec& spec) {
  CHECK(difference(counts_of(fact.at("tensors")), census_of(spec, false)) == "");
  CHECK(difference(sorted(counts_of(fact.at("buffer_tensors"))), sorted(census_of(spec, true))) == "");
  if (lists_conv1d(fact)) CHECK(linears_with_tensors(fact) == linear_modules_of(spec));
}

void check_file(const std::string& file) {
  for (const Json& fact : read_facts(file)) {
    INFO(label_of(fact));
    const ModelSpec spec = describe(resolved_config(fact));
    CHECK(spec.parameters() == fact.at("parameters").get<std::int64_t>());
    if (!fact.contains("tensors")) continue;
    if (spec.position != PositionKind::learned || spec.sections.size() > 3) {
      CHECK(spec.tied_embeddings == fact.at("tied").get<bool>());
    }
    check_tensors(fact, spec);
  }
}

}  // namespace

TEST_CASE("census of public configs") { check_file("public-configs.jsonl"); }
TEST_CASE("census of published models") { check_file("models.jsonl"); }
TEST_CASE("census of class defaults and options") { check_file("variants.jsonl"); }
TEST_CASE("census of odd configs") { check_file("odd-configs.jsonl"); }

}  // namespace membill::census_test
