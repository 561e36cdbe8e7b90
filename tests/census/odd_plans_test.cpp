// Whatever switches a config turns, every plan that its type can run gives a bill: no crash, items that sum to the total, a plan that is
// refused has a reason.
#include <functional>
#include <string>
#include <vector>

#include "facts.h"
#include "membill/estimate.h"
#include "support/catch.h"

namespace membill::census_test {
namespace {

struct PlanCase {
  const char* name;
  std::function<void(TrainingPlan&)> change;
  std::int64_t gpus = 1;
};

void use_zero(TrainingPlan& plan, std::int64_t stage) {
  plan.engine = Engine::deepspeed;
  plan.sharding.zero = stage;
  plan.weights = WeightFormat::bf16;
  plan.precision = Precision::master_bf16;
}

const std::vector<PlanCase>& plan_cases() {
  static const std::vector<PlanCase> all{
      {"full", [](TrainingPlan&) {}},
      {"full, checkpointing", [](TrainingPlan& plan) { plan.checkpointing.mode = Checkpointing::full; }},
      {"eager fp32",
       [](TrainingPlan& plan) {
         plan.precision = Precision::fp32;
         plan.attention = AttentionKernel::eager;
       }},
      {"liger", [](TrainingPlan& plan) { plan.implementation = Implementation::liger; }},
      {"dpo", [](TrainingPlan& plan) { plan.stage = Stage::dpo; }},
      {"zero 2", [](TrainingPlan& plan) { use_zero(plan, 2); }, 2},
      {"zero 3", [](TrainingPlan& plan) { use_zero(plan, 3); }, 2},
      {"fsdp",
       [](TrainingPlan& plan) {
         plan.engine = Engine::fsdp;
         plan.sharding.fsdp = "full_shard";
       },
       2},
      {"fsdp2",
       [](TrainingPlan& plan) {
         plan.engine = Engine::fsdp2;
         plan.sharding.fsdp = "full_shard";
       },
       2},
  };
  return all;
}

void check_plan(const ModelSpec& spec, const PlanCase& plan_case) {
  INFO(plan_case.name);
  TrainingPlan plan;
  plan.batch = 2;
  plan.seq = 16;
  plan_case.change(plan);
  Hardware hardware;
  hardware.count = plan_case.gpus;
  if (!validate(spec, plan, hardware).empty()) return;
  const Report report = estimate(spec, plan, hardware, {});
  std::int64_t sum = 0;
  for (const LineItem& line : report.items)
    if (line.where == Place::device && line.at_peak) sum += *line.at_peak;
  CHECK((report.at_least || sum == report.totals.requested.likely));
}

}  // namespace

TEST_CASE("odd configs under every engine") {
  for (const Json& fact : read_facts("odd-configs.jsonl")) {
    INFO(fact.at("config").dump());
    const ModelSpec spec = describe(resolved_config(fact));
    for (const PlanCase& plan_case : plan_cases()) check_plan(spec, plan_case);
  }
}

}  // namespace membill::census_test
