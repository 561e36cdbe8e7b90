// Closed forms of what sharding engines hold of weights, gradients and states, on a model of which only the total is known.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "membill/catalog.h"
#include "membill/estimate.h"
#include "support/catch.h"
#include "support/preset.h"

namespace membill {
namespace {

using test::preset;

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
  const auto in_gigabytes = [&](std::int64_t stage, std::int64_t gradient_cards) {
    const std::int64_t bytes = states(bytes_of(model, deepspeed(stage), 64)) + 2 * 7'500'000'000 / gradient_cards;
    return fmt::format("{:.1f}", static_cast<double>(bytes) / 1e9);
  };
  CHECK(in_gigabytes(0, 1) == "120.0");
  CHECK(in_gigabytes(1, 1) == "31.4");
  CHECK(in_gigabytes(2, 64) == "16.6");
  CHECK(in_gigabytes(3, 64) == "1.9");
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
    auto bytes = bytes_of(of_parameters(8'000'000'000), plan, ranks);
    CHECK(states(bytes) == 12 * 8'000'000'000 / ranks);
  }
}

// One rank of 64 of Llama-2-7B: shards of weights, moments and gradients, and the units at work: the root (embedding, final norm, head)
// and one block in 16 bits, each as it is gathered beside what it becomes, with the block's own shard cast; and the input of a reduction.
TEST_CASE("FSDP2: 16 bytes a parameter over the ranks, and the units at work") {
  TrainingPlan plan;
  plan.engine = Engine::fsdp2;
  plan.sharding.fsdp = "full_shard";
  plan.sharding.engine_keys = {{"param_dtype", "bf16"}, {"reduce_dtype", "fp32"}};
  plan.weights = WeightFormat::fp32;
  plan.checkpointing.mode = Checkpointing::full;
  plan.loop = Loop::plain;
  const std::int64_t root = 2 * 32000 * 4096 + 4096, block = 4 * 4096 * 4096 + 3 * 4096 * 11008 + 2 * 4096;
  auto bytes = bytes_of(preset("llama-2-7b"), plan, 64);
  const std::int64_t shard = 4 * (root + 32 * block) / 64;
  CHECK(states(bytes) == 3 * shard);
  CHECK(bytes["gathered.parameters"] == 2 * (root + block));
  CHECK(bytes["gathered.flat"] == 2 * (root + block) + 2 * block / 64);
  CHECK(bytes["buffers.reduce_scatter"] == 4 * root);
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

namespace {

// A figure as DeepSpeed prints it.
std::string printed(std::int64_t bytes) { return fmt::format("{:.2f}", static_cast<double>(bytes) / (1LL << 30)); }

// Parameters of the module that holds most of its own.
std::int64_t largest_module(const ModelSpec& model) {
  std::int64_t largest = 0;
  for (const Section& section : model.sections)
    for (const LayerKind& kind : section.kinds)
      for (const TensorSpec& tensor : kind.tensors) largest = std::max(largest, tensor.elements());
  return largest;
}

struct EstimatorExample {
  const char* name;
  std::int64_t cards, millions;
  const char *stage2_offload, *stage2, *stage3_optimizer_offload, *stage3;
};

}  // namespace

// docs/code-docs/source/memory.rst, the examples of estimate_zero2_model_states_mem_needs and estimate_zero3_...: t5-3b on 8 cards. At
// stage 2 they count 4 + 16/n bytes: 16-bit gradients whole, and an fp32 copy of each card's part in the step; at stage 3 18/n, both
// gradients in parts, and the largest module gathered with its gradient, 2 + 2 bytes.
TEST_CASE("DeepSpeed's estimator: its documented examples") {
  const EstimatorExample example{"t5-3b", 8, 2851, "5.31", "15.93", "0.79", "6.10"};
  const ModelSpec t5 = preset(example.name);
  const std::int64_t parameters = t5.parameters(), gathered = 4 * largest_module(t5);
  CHECK(parameters / 1'000'000 == example.millions);
  CHECK(gathered / 4 / 1'000'000 == 32);
  const ModelSpec model = of_parameters(parameters);
  const auto on_card = [&](std::int64_t stage, const char* offload) {
    TrainingPlan plan = deepspeed(stage);
    plan.sharding.offload = offload;
    return states(bytes_of(model, plan, example.cards));
  };
  CHECK(printed(on_card(2, "optimizer")) == example.stage2_offload);
  CHECK(printed(on_card(2, "none") + 2 * parameters + 4 * parameters / example.cards) == example.stage2);
  CHECK(printed(on_card(3, "optimizer") + gathered) == example.stage3_optimizer_offload);
  CHECK(printed(on_card(3, "none") + gathered + 4 * parameters / example.cards) == example.stage3);
  CHECK(printed(gathered) == "0.12");
}

// The same page, "Discussion": t5-large on 4 cards, in MiB.
TEST_CASE("DeepSpeed's estimator: its discussion of t5-large") {
  const ModelSpec t5 = preset("t5-large");
  const std::int64_t parameters = t5.parameters(), gathered = 4 * largest_module(t5);
  const ModelSpec model = of_parameters(parameters);
  TrainingPlan offloaded = deepspeed(3);
  offloaded.sharding.offload = "optimizer";
  CHECK(gathered >> 20 == 125);
  CHECK((states(bytes_of(model, deepspeed(3), 4)) + 4 * parameters / 4 + gathered) >> 20 == 3291);
  CHECK((states(bytes_of(model, offloaded, 4)) + gathered) >> 20 == 477);
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
