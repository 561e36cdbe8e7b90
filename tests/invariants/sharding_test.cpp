// Sharding on every engine: more ranks never cost a rank more in weights, gradients kept and states; a later ZeRO stage never has more
// states than the one before; the ranks' parts sum to the model; what is allocated is freed once.
#include <map>
#include <string>
#include <vector>

#include "estimate/simulation.h"
#include "membill/catalog.h"
#include "membill/estimate.h"
#include "support/catch.h"
#include "support/small_llama.h"
#include "trace/expand.h"
#include "trace/fold.h"

namespace membill {
namespace {

using test::small_llama;

struct Case {
  const char* name;
  Engine engine;
  std::int64_t zero;
  const char* fsdp;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{{"ddp", Engine::ddp, 0, "none"},
                                     {"zero 0", Engine::deepspeed, 0, "none"},
                                     {"zero 1", Engine::deepspeed, 1, "none"},
                                     {"zero 2", Engine::deepspeed, 2, "none"},
                                     {"zero 3", Engine::deepspeed, 3, "none"},
                                     {"fsdp1", Engine::fsdp, 0, "full_shard"},
                                     {"fsdp1 grad", Engine::fsdp, 0, "shard_grad_op"},
                                     {"fsdp2", Engine::fsdp2, 0, "full_shard"},
                                     {"fsdp2 grad", Engine::fsdp2, 0, "shard_grad_op"}};
  return all;
}

TrainingPlan plan_of(const Case& of, bool checkpointed) {
  TrainingPlan plan;
  plan.engine = of.engine;
  plan.sharding.zero = of.zero;
  plan.sharding.fsdp = of.fsdp;
  plan.weights = of.engine == Engine::deepspeed ? WeightFormat::bf16 : WeightFormat::fp32;
  plan.precision = of.engine == Engine::deepspeed ? Precision::master_bf16 : Precision::amp_bf16;
  plan.seq = 64;
  if (checkpointed) plan.checkpointing.mode = Checkpointing::full;
  return plan;
}

std::map<std::string, std::int64_t> bytes_of(const TrainingPlan& plan, std::int64_t ranks, std::int64_t rank = 0) {
  Hardware hardware;
  hardware.count = ranks;
  hardware.rank = rank;
  EstimateOptions options;
  options.replay = false;
  std::map<std::string, std::int64_t> bytes;
  for (const LineItem& line : estimate(small_llama(), plan, hardware, options).items)
    if (line.where == Place::device) bytes[line.id] = line.bytes.value_or(0);
  return bytes;
}

std::int64_t states(std::map<std::string, std::int64_t> bytes) {
  return bytes["weights.base"] + bytes["weights.master"] + bytes["optimizer.m"] + bytes["optimizer.v"];
}

}  // namespace

TEST_CASE("sharding: every case is billed") {
  for (const Case& of : cases()) {
    Hardware hardware;
    hardware.count = 4;
    const std::vector<Problem> problems = validate(small_llama(), plan_of(of, false), hardware);
    INFO(of.name << (problems.empty() ? "" : ": " + problems.front().message));
    CHECK(problems.empty());
  }
}

TEST_CASE("sharding: more ranks never cost a rank more states") {
  for (const Case& of : cases()) {
    std::int64_t before = 0;
    for (const std::int64_t ranks : {2, 3, 4, 8, 64, 512}) {
      const std::int64_t now = states(bytes_of(plan_of(of, false), ranks));
      INFO(of.name << " on " << ranks);
      // Partitions are aligned to twice the ranks: a few bytes each way.
      if (before > 0) CHECK(now <= before + 32 * ranks);
      before = now;
    }
  }
}

TEST_CASE("sharding: packed codes are cut whether the scales are quantised or not") {
  for (const Case& of : cases()) {
    if (of.engine != Engine::fsdp && of.engine != Engine::fsdp2) continue;
    for (const bool double_quant : {true, false}) {
      TrainingPlan plan = plan_of(of, false);
      plan.method = Method::lora;
      plan.adapter.targets = {"all-linear"};
      plan.weights = WeightFormat::nf4;
      plan.double_quant = double_quant;
      plan.sharding.engine_keys["quant_storage"] = "bf16";
      const std::int64_t of_two = bytes_of(plan, 2)["weights.base"], of_eight = bytes_of(plan, 8)["weights.base"];
      INFO(of.name << (double_quant ? ", twice" : ", once"));
      CHECK(of_two == of_eight * 4);
    }
  }
}

TEST_CASE("sharding: a ZeRO stage never has more states than the stage before") {
  for (const std::int64_t ranks : {2, 4, 8, 64}) {
    std::int64_t before = states(bytes_of(plan_of({"", Engine::deepspeed, 0, "none"}, false), ranks));
    for (const std::int64_t stage : {1, 2, 3}) {
      const std::int64_t now = states(bytes_of(plan_of({"", Engine::deepspeed, stage, "none"}, false), ranks));
      CHECK(now <= before);
      before = now;
    }
  }
}

TEST_CASE("sharding: moments of all ranks sum to the model's") {
  const std::int64_t parameters = small_llama().parameters();
  for (const Case& of : cases()) {
    if (of.engine == Engine::ddp || of.zero == 0) continue;
    std::int64_t sum = 0;
    for (std::int64_t rank = 0; rank < 6; ++rank) sum += bytes_of(plan_of(of, false), 6, rank)["optimizer.m"];
    INFO(of.name);
    CHECK(sum >= 4 * parameters);
    CHECK(sum <= 4 * parameters + 4 * 6 * 200);  // a padding of one row of each tensor at most
  }
}

namespace {

// What lives when the billed step begins and when it ends, its loops expanded; nothing when a tensor is made twice or freed twice.
struct StepEnds {
  std::int64_t begin = 0, end = 0, highest = 0;
  bool consistent = true;
};
StepEnds ends_of(const TrainingPlan& plan) {
  Hardware hardware;
  hardware.count = 4;
  const Simulation job = simulate(small_llama(), plan, hardware);
  const std::vector<std::int64_t> bytes = job.trace.evaluate(job.symbols);
  const FlatTrace flat = expand(job.trace, bytes);
  StepEnds ends;
  std::vector<bool> alive(static_cast<std::size_t>(flat.tensors), false);
  for (std::size_t i = 0; i < flat.events.size(); ++i) {
    if (i == flat.billed_from) ends.begin = ends.end;
    const FlatEvent& event = flat.events[i];
    if (event.kind != EventKind::allocate && event.kind != EventKind::release) continue;
    const bool makes = event.kind == EventKind::allocate;
    const auto number = static_cast<std::size_t>(event.number);
    ends.consistent = ends.consistent && alive[number] != makes;
    alive[number] = makes;
    ends.end += (makes ? 1 : -1) * bytes[static_cast<std::size_t>(event.size)];
  }
  ends.highest = fold_peak(job.trace, bytes).highest;
  return ends;
}

}  // namespace

TEST_CASE("sharding: two steps leave as much as one, whatever the engine") {
  for (const Case& of : cases()) {
    for (const bool checkpointed : {false, true}) {
      for (const Loop loop : {Loop::trainer, Loop::plain}) {
        for (const std::int64_t accumulate : {1, 2, 3, 5}) {
          TrainingPlan plan = plan_of(of, checkpointed);
          plan.accumulate = accumulate;
          plan.loop = loop;
          const StepEnds ends = ends_of(plan);
          INFO(of.name << ", checkpointed " << checkpointed << ", accumulate " << accumulate << ", plain loop "
                       << (loop == Loop::plain));
          CHECK(ends.consistent);
          CHECK(ends.highest > 0);
          CHECK(ends.end == ends.begin);
        }
      }
    }
  }
}

}  // namespace membill
