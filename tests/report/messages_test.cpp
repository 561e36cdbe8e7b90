// The message table: both languages say each sentence, with the same gaps.
#include <algorithm>
#include <set>
#include <string>

#include "membill/catalog.h"
#include "membill/remedies.h"
#include "report/messages.h"
#include "support/catch.h"

namespace membill::report {
namespace {

std::multiset<std::string> gaps(std::string_view text) {
  std::multiset<std::string> found;
  for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1))
    found.emplace(text.substr(at, text.find('}', at) - at + 1));
  return found;
}

}  // namespace

TEST_CASE("messages exist once in both languages with the same gaps") {
  std::set<std::string_view> keys;
  for (const MessageRow& row : messages()) {
    INFO(row.key);
    CHECK(keys.insert(row.key).second);
    CHECK(!row.en.empty());
    CHECK(!row.zh.empty());
    CHECK(gaps(row.en) == gaps(row.zh));
  }
}

TEST_CASE("every remedy has a name") {
  Problems problems;
  GenericModel given;
  given.hidden = 256;
  given.layers = 4;
  const ModelSpec model = generic_model(given, problems);
  Hardware many;
  many.count = 8;
  for (const Method method : {Method::full, Method::lora}) {
    TrainingPlan plan;
    plan.method = method;
    plan.batch = 4;
    plan.weights = WeightFormat::fp32;
    plan.precision = Precision::fp32;
    plan.attention = AttentionKernel::eager;
    plan.keep_outputs = true;
    for (const Remedy& remedy : remedies(model, plan, many))
      CHECK(message("remedy." + remedy.id, Language::zh) != "remedy." + remedy.id);
  }
}

}  // namespace membill::report
