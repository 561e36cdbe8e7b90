// The message table: both languages say each sentence, with the same gaps.
#include <algorithm>
#include <set>
#include <string>

#include "estimate/item_table.h"
#include "membill/catalog.h"
#include "membill/remedies.h"
#include "report/messages.h"
#include "report/text.h"
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

TEST_CASE("every line of a bill and every moment has a name in Chinese") {
  for (const ItemRow& row : item_table()) {
    INFO(row.id);
    CHECK((row.id == "other" || message(row.id, Language::zh) != row.id));
    CHECK((row.id == "other" || message(row.id, Language::en) == row.label));
  }
  for (const char* moment : {"build", "forward", "reference", "loss", "backward", "clip", "step", "zero"})
    CHECK(message(moment, Language::zh) != moment);
  for (const Answer answer : {Answer::fits, Answer::tight, Answer::does_not_fit, Answer::unknown, Answer::none})
    CHECK(message(answer_word(answer), Language::zh) != answer_word(answer));
}

TEST_CASE("Chinese sentences use the signs of their script") {
  for (const MessageRow& row : messages()) {
    INFO(row.zh);
    for (std::size_t at = row.zh.find_first_of(",;?!()"); at != std::string_view::npos;
         at = row.zh.find_first_of(",;?!()", at + 1))
      CHECK((row.zh == row.en || (at > 0 && row.zh[at - 1] >= '0' && row.zh[at - 1] <= '9')));
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
