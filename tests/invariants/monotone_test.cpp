// Longer sequences and larger batches never cost less, from one token on.
#include "membill/estimate.h"
#include "support/catch.h"
#include "support/small_llama.h"

namespace {

using namespace membill;

std::int64_t requested(const TrainingPlan& plan) {
  EstimateOptions options;
  options.replay = false;
  return *estimate(test::small_llama(), plan, {}, options).totals.requested.likely;
}

TEST_CASE("more tokens never cost less, from one on") {
  for (const Method method : {Method::full, Method::lora}) {
    for (const Checkpointing mode : {Checkpointing::none, Checkpointing::full}) {
      TrainingPlan plan;
      plan.method = method;
      plan.adapter.targets = {"all-linear"};
      plan.checkpointing.mode = mode;
      std::int64_t last = 0;
      for (const std::int64_t seq : {1, 2, 3, 4, 8, 31, 32, 64, 128}) {
        plan.seq = seq;
        const std::int64_t now = requested(plan);
        INFO(seq);
        CHECK(now >= last);
        last = now;
      }
      plan.seq = 1;
      last = 0;
      for (plan.batch = 1; plan.batch <= 4; ++plan.batch) {
        const std::int64_t now = requested(plan);
        CHECK(now >= last);
        last = now;
      }
    }
  }
}

}  // namespace
