// What solve promises: its answer fits, the next value does not; and what diff and plan promise.
#include <algorithm>

#include "membill/catalog.h"
#include "membill/diff.h"
#include "membill/remedies.h"
#include "membill/solve.h"
#include "support/catch.h"

namespace membill {
namespace {

ModelSpec model_of_layers(std::int64_t layers) {
  Problems problems;
  GenericModel given;
  given.hidden = 2048;
  given.layers = layers;
  given.heads = 16;
  given.kv_heads = 4;
  given.intermediate = 5632;
  given.vocab = 32000;
  return generic_model(given, problems);
}

Hardware card(std::int64_t gib) {
  Hardware hardware;
  hardware.gpu = GpuSpec();
  hardware.gpu->short_name = std::to_string(gib) + " GiB";
  hardware.gpu->usable = Bytes(gib << 30);
  return hardware;
}

TrainingPlan settings(const std::vector<PlanSetting>& list) {
  TrainingPlan plan;
  Problems problems;
  read_plan_settings(list, "test", plan, problems);
  REQUIRE(problems.empty());
  return plan;
}

const SolveTargetRow& target(std::string_view name) {
  const auto& rows = solve_targets();
  return *std::find_if(rows.begin(), rows.end(), [&](const SolveTargetRow& row) { return row.name == name; });
}

bool fits(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware) {
  const Answer answer = estimate(model, plan, hardware).verdict.answer;
  return answer == Answer::fits || answer == Answer::tight;
}

}  // namespace

TEST_CASE("the largest batch and length fit and the next do not") {
  const ModelSpec model = model_of_layers(12);
  for (const char* method : {"full", "lora"}) {
    for (const std::int64_t gib : {10, 16, 24}) {
      TrainingPlan plan = settings({{"method", method}, {"checkpointing", "full"}, {"adapter.targets", "all-linear"}});
      Solution solution = solve(model, plan, card(gib), target("batch"));
      INFO(method << " on " << gib);
      REQUIRE((solution.answer && solution.next));
      CHECK(solution.next->value == solution.answer->value + 1);
      plan.batch = solution.answer->value;
      CHECK(fits(model, plan, card(gib)));
      plan.batch = solution.next->value;
      CHECK(!fits(model, plan, card(gib)));
      plan.batch = 1;
      solution = solve(model, plan, card(gib), target("seq"));
      REQUIRE((solution.answer && solution.next));
      CHECK(solution.next->value == solution.answer->value + 1);
      CHECK(solution.answer->fits);
      CHECK(!solution.next->fits);
    }
  }
}

TEST_CASE("rank and layers are solved too") {
  const TrainingPlan plan =
      settings({{"method", "lora"}, {"adapter.targets", "all-linear"}, {"checkpointing", "full"}});
  for (const char* name : {"rank", "layers"}) {
    const Solution solution = solve(model_of_layers(12), plan, card(10), target(name));
    INFO(name);
    REQUIRE((solution.answer && solution.next));
    CHECK(solution.next->value == solution.answer->value + 1);
  }
  const Solution deep = solve(model_of_layers(12), plan, card(10), target("layers"));
  CHECK(fits(model_of_layers(deep.answer->value), plan, card(10)));
  CHECK(!fits(model_of_layers(deep.next->value), plan, card(10)));
}

TEST_CASE("a search that has no answer or no end says so") {
  const TrainingPlan plan = settings({});
  const Solution none = solve(model_of_layers(12), plan, card(2), target("batch"));
  CHECK(!none.answer);
  CHECK(none.next->value == 1);
  const Solution one = solve(model_of_layers(2), plan, card(80), target("gpus"));
  CHECK(one.answer->value == 1);
  CHECK(!one.next);
}

TEST_CASE("a search that cannot succeed is refused") {
  const auto message_of = [](const TrainingPlan& plan, const char* name) {
    try {
      (void)solve(model_of_layers(4), plan, card(24), target(name));
    } catch (const InputError& error) {
      return to_text(error.problems().front());
    }
    return std::string();
  };
  CHECK(message_of(settings({}), "rank") == "method: has no adapter whose rank could grow (lora, qlora or dora)");
  Problems problems;
  GenericModel given;
  given.params = 1000000;
  CHECK_THROWS_AS(solve(generic_model(given, problems), settings({}), card(24), target("batch")), InputError);
}

TEST_CASE("differences of items sum to the difference of the totals") {
  const ModelSpec model = model_of_layers(12);
  const Report a = estimate(model, settings({{"method", "lora"}, {"adapter.targets", "all-linear"}}), card(24));
  const Report b = estimate(model, settings({{"checkpointing", "full"}, {"seq", "4096"}}), card(24));
  const BillDiff result = diff(a, b);
  std::int64_t sum = 0;
  for (const ItemDiff& item : result.items) sum += item.change;
  CHECK(sum == *b.totals.requested.likely - *a.totals.requested.likely);
  const auto how = [&](const char* id) {
    for (const ItemDiff& item : result.items)
      if (item.id == id) return std::string(change_word(item.how));
    return std::string();
  };
  CHECK(how("weights.adapter") == "gone");
  CHECK(how("optimizer.m") == "grew");
  CHECK(how("weights.base") == "same");
  std::string keys;
  for (const FieldDiff& field : result.fields) keys += field.key + ": " + field.a + " " + field.b + "\n";
  CHECK(keys.find("seq: 2048 4096\n") != std::string::npos);
  CHECK(keys.find("method: \"lora\" \"full\"\n") != std::string::npos);
  CHECK(diff(a, a).fields.empty());
}

TEST_CASE("every list of changes that is said to suffice does") {
  const ModelSpec model = model_of_layers(12);
  for (const std::int64_t gib : {6, 8, 12, 16}) {
    const TrainingPlan plan = settings({{"batch", "4"}});
    const RemedyPlan found = find_remedies(model, plan, card(gib), {*card(80).gpu, *card(24).gpu, *card(48).gpu});
    INFO(gib);
    std::vector<RemedyTrial> lists = found.together;
    lists.insert(lists.end(), found.single.begin(), found.single.end());
    REQUIRE(!lists.empty());
    bool any = false;
    for (const RemedyTrial& trial : lists) {
      TrainingPlan changed = plan;
      std::vector<PlanSetting> all;
      for (const Remedy& remedy : trial.remedies) all.insert(all.end(), remedy.settings.begin(), remedy.settings.end());
      Problems problems;
      read_plan_settings(all, "test", changed, problems);
      const bool said = trial.answer == Answer::fits || trial.answer == Answer::tight;
      CHECK(fits(model, changed, card(gib)) == said);
      any = any || said;
    }
    CHECK(any);
    REQUIRE(found.card_now);
    CHECK(found.card_now->short_name == (fits(model, plan, card(24))   ? "24 GiB"
                                         : fits(model, plan, card(48)) ? "48 GiB"
                                                                       : "80 GiB"));
  }
}

TEST_CASE("a job that fits needs no change and one that cannot is told the least") {
  const RemedyPlan fine = find_remedies(model_of_layers(12), settings({}), card(80), {});
  CHECK(fine.fits_now());
  CHECK(fine.single.empty());
  const RemedyPlan hopeless = find_remedies(model_of_layers(12), settings({}), card(1), {*card(24).gpu});
  CHECK(hopeless.together.empty());
  REQUIRE(hopeless.smallest);
  CHECK(hopeless.card_then->short_name == "24 GiB");
}

}  // namespace membill
