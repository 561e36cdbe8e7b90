// Closed forms of what sharding engines hold of weights, gradients and states, on a model of which only the total is known.
#include <array>
#include <map>
#include <string>

#include "membill/catalog.h"
#include "membill/estimate.h"
#include "support/catch.h"

namespace membill {
namespace {

constexpr std::int64_t kBillion = 1'000'000'000;

ModelSpec of_parameters(std::int64_t parameters) {
  ModelSpec model;
  model.name = model.model_type = "generic";
  model.stated_parameters = parameters;
  model.dimensions_known = false;
  return model;
}

TrainingPlan deepspeed(std::int64_t stage) {
  TrainingPlan plan;
  plan.engine = Engine::deepspeed;
  plan.precision = Precision::master_bf16;
  plan.optimizer_impl = OptimizerImpl::fused;
  plan.sharding.zero = stage;
  plan.loop = Loop::plain;
  return plan;
}

Hardware cards(std::int64_t count) {
  Hardware hardware;
  hardware.count = count;
  return hardware;
}

std::map<std::string, std::int64_t> bytes_of(const ModelSpec& model, const TrainingPlan& plan, std::int64_t count) {
  EstimateOptions options;
  options.replay = false;
  std::map<std::string, std::int64_t> bytes;
  for (const LineItem& line : estimate(model, plan, cards(count), options).items)
    if (line.where == Place::device) bytes[line.id] = line.bytes.value_or(-1);
  return bytes;
}

// Weights, fp32 masters and moments: what is there at every moment.
std::int64_t states(std::map<std::string, std::int64_t> bytes) {
  return bytes["weights.base"] + bytes["weights.master"] + bytes["optimizer.m"] + bytes["optimizer.v"];
}

}  // namespace

// Rajbhandari et al. 2020, figure 1: 7.5 B parameters on 64 cards. Gradients, 2 bytes a parameter, are the figure's remaining part.
TEST_CASE("ZeRO figure 1: 7500 million parameters, K 12, 64 cards") {
  const ModelSpec model = of_parameters(7'500'000'000);
  CHECK(states(bytes_of(model, deepspeed(0), 64)) == 14 * 7'500'000'000);
  CHECK(bytes_of(model, deepspeed(0), 64)["gradients"] >= 2 * 7'500'000'000);
  for (const std::int64_t stage : {1, 2})
    CHECK(states(bytes_of(model, deepspeed(stage), 64)) == 2 * 7'500'000'000 + 12 * 7'500'000'000 / 64);
  CHECK(states(bytes_of(model, deepspeed(3), 64)) == 14 * 7'500'000'000 / 64);
}

// Table 1 of the same paper: per-card gigabytes of states with K 12 by degree. Its columns with gradients: P_os 4 + 12/N, P_os+g
// 2 + 14/N, P_os+g+p 16/N bytes a parameter.
TEST_CASE("ZeRO table 1: bytes a parameter by degree") {
  for (const std::int64_t degree : {1, 4, 16, 64, 256, 1024}) {
    for (const std::int64_t parameters : {std::int64_t{7'536'640'000}, std::int64_t{128'000'000'000}}) {
      if (degree == 1) continue;
      const ModelSpec model = of_parameters(parameters);
      CHECK(states(bytes_of(model, deepspeed(1), degree)) == 2 * parameters + 12 * parameters / degree);
      CHECK(states(bytes_of(model, deepspeed(2), degree)) == 2 * parameters + 12 * parameters / degree);
      CHECK(states(bytes_of(model, deepspeed(3), degree)) == 14 * parameters / degree);
    }
  }
}

TEST_CASE("FSDP2 over fp32 shards: 16 bytes a parameter over the ranks") {
  TrainingPlan plan;
  plan.engine = Engine::fsdp2;
  plan.sharding.fsdp = "full_shard";
  plan.weights = WeightFormat::fp32;
  plan.optimizer_impl = OptimizerImpl::fused;
  for (const std::int64_t ranks : {2, 8, 64}) {
    auto bytes = bytes_of(of_parameters(8 * kBillion), plan, ranks);
    CHECK(states(bytes) == 12 * 8 * kBillion / ranks);
  }
}

// Megatron-LM docs/dist_optimizer.md: bf16 parameters with fp32 gradients, 18 bytes a parameter, 6 + 12/d with the distributed optimizer.
TEST_CASE("Megatron: 18 bytes a parameter, 6 + 12/d with the distributed optimizer") {
  Problems problems;
  GenericModel given;
  given.hidden = 1024;  // every tensor, and every share of the buffer, is a multiple of what it is padded to
  given.layers = 8;
  given.heads = 8;
  given.intermediate = 4096;
  given.vocab = 32768;
  const ModelSpec model = generic_model(given, problems);
  const std::int64_t parameters = model.parameters();
  for (const std::int64_t ranks : {1, 2, 4, 8, 16, 64}) {
    TrainingPlan plan;
    plan.engine = Engine::megatron;
    plan.implementation = Implementation::megatron;
    plan.precision = Precision::master_bf16;
    plan.optimizer_impl = OptimizerImpl::fused;
    plan.seq = 16;
    const auto resident = [&] {
      auto bytes = bytes_of(model, plan, ranks);
      return states(bytes);
    };
    CHECK(resident() == 14 * parameters);
    plan.sharding.zero = 1;
    CHECK(resident() == 2 * parameters + 12 * parameters / ranks);
    CHECK(bytes_of(model, plan, ranks)["gradients"] >= 4 * parameters);
  }
}

// docs/code-docs/source/memory.rst: stages 1 and 2 of a 2851 M parameter model on 8 cards of one node; 2 bytes of weights and of
// gradients whole, 16 over the cards without offload.
TEST_CASE("DeepSpeed keeps no states on the card when the optimizer is on the host") {
  TrainingPlan plan = deepspeed(2);
  plan.sharding.offload = "optimizer";
  const std::int64_t parameters = 2'851'000'000;
  auto bytes = bytes_of(of_parameters(parameters), plan, 8);
  CHECK(bytes["weights.base"] == 2 * round_up(parameters, 16));
  CHECK(bytes.count("weights.master") == 0);
  CHECK(bytes.count("optimizer.m") == 0);
}

}  // namespace membill
