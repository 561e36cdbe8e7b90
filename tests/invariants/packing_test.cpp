// Packing: full rows cost what full rows cost; a micro-batch that is joined to one row costs what one row of as many tokens does.
#include <map>
#include <string>

#include "membill/catalog.h"
#include "membill/estimate.h"
#include "support/catch.h"
#include "support/small_llama.h"

namespace membill {
namespace {

// Bytes by item, but for what the batch brings (positions take the place of a mask).
std::map<std::string, std::int64_t> bytes_of(const TrainingPlan& plan) {
  EstimateOptions options;
  options.replay = false;
  std::map<std::string, std::int64_t> bytes;
  for (const LineItem& line : estimate(test::small_llama(), plan, {}, options).items)
    if (line.id != "activations.inputs" && line.id != "activations.embedding") bytes[line.id] = line.bytes.value_or(0);
  return bytes;
}

TrainingPlan plan_of(std::int64_t batch, std::int64_t seq) {
  TrainingPlan plan;
  plan.batch = batch;
  plan.seq = seq;
  plan.attention = AttentionKernel::flash;
  return plan;
}

}  // namespace

TEST_CASE("packing: rows that are full cost nothing more for holding several documents") {
  TrainingPlan plan = plan_of(4, 64);
  const auto plain = bytes_of(plan);
  plan.packing = true;
  CHECK(bytes_of(plan) == plain);
}

TEST_CASE("packing: joined rows are one row") {
  for (const bool checkpointed : {false, true}) {
    for (const Method method : {Method::full, Method::lora}) {
      TrainingPlan joined = plan_of(4, 64), one = plan_of(1, 256);
      joined.padding_free = true;
      for (TrainingPlan* plan : {&joined, &one}) {
        plan->method = method;
        plan->adapter.targets = {"all-linear"};
        if (checkpointed) plan->checkpointing.mode = Checkpointing::full;
      }
      INFO("checkpointed " << checkpointed << ", method " << static_cast<int>(method));
      CHECK(bytes_of(joined) == bytes_of(one));
    }
  }
}

TEST_CASE("packing: kernels that do not take documents' boundaries are given a mask") {
  TrainingPlan flash = plan_of(4, 64);
  flash.packing = flash.padding_free = true;
  TrainingPlan sdpa = flash;
  sdpa.attention = AttentionKernel::sdpa;
  CHECK(bytes_of(sdpa).at("activations.block") > bytes_of(flash).at("activations.block"));
}

}  // namespace membill
