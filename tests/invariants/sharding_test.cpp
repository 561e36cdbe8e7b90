// Sharding on every engine: more ranks never cost a rank more in weights, gradients kept and states; a later ZeRO stage never has more
// states than the one before; the ranks' parts sum to the model; what is allocated is freed once.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "estimate/rank_model.h"
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
  std::int64_t pp = 1, virtual_pp = 1, tp = 1;
  const char* first_stage = "";  // layers of it
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{{"ddp", Engine::ddp, 0, "none"},
                                     {"zero 0", Engine::deepspeed, 0, "none"},
                                     {"zero 1", Engine::deepspeed, 1, "none"},
                                     {"zero 2", Engine::deepspeed, 2, "none"},
                                     {"zero 3", Engine::deepspeed, 3, "none"},
                                     {"megatron", Engine::megatron, 0, "none"},
                                     {"megatron 1", Engine::megatron, 1, "none"},
                                     {"fsdp1", Engine::fsdp, 0, "full_shard"},
                                     {"fsdp1 grad", Engine::fsdp, 0, "shard_grad_op"},
                                     {"fsdp2", Engine::fsdp2, 0, "full_shard"},
                                     {"fsdp2 grad", Engine::fsdp2, 0, "shard_grad_op"}};
  return all;
}

// Four cards each, the model with eight layers.
const std::vector<Case>& pipelines() {
  static const std::vector<Case> all{{"tp 2", Engine::megatron, 1, "none", 1, 1, 2},
                                     {"pp 2", Engine::megatron, 1, "none", 2},
                                     {"pp 2, whole optimizer", Engine::megatron, 0, "none", 2, 1, 2},
                                     {"pp 4, uneven", Engine::megatron, 1, "none", 4, 1, 1, "2"},
                                     {"pp 2, 2 chunks", Engine::megatron, 1, "none", 2, 2}};
  return all;
}

ModelSpec eight_layers() {
  ModelSpec model = small_llama();
  model.layers = 8;
  for (Section& section : model.sections)
    if (!section.layer_kinds.empty()) section.layer_kinds.resize(8);
  return model;
}

TrainingPlan plan_of(const Case& of, bool checkpointed) {
  const bool masters = of.engine == Engine::deepspeed || of.engine == Engine::megatron;
  TrainingPlan plan;
  plan.engine = of.engine;
  plan.sharding.zero = of.zero;
  plan.sharding.fsdp = of.fsdp;
  plan.weights = masters ? WeightFormat::bf16 : WeightFormat::fp32;
  plan.precision = masters ? Precision::master_bf16 : Precision::amp_bf16;
  if (of.engine == Engine::megatron) plan.implementation = Implementation::megatron;
  plan.parallel.pp = of.pp;
  plan.parallel.virtual_pp = of.virtual_pp;
  plan.parallel.tp = of.tp;
  plan.parallel.sp = of.tp > 1;
  if (of.first_stage[0] != 0) plan.sharding.engine_keys["decoder_first_pipeline_num_layers"] = of.first_stage;
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

// What lives after the billed step less what lived before it; nothing when a tensor is freed twice or made twice.
std::optional<std::int64_t> left_by_step(const Simulation& job) {
  const std::vector<std::int64_t> bytes = job.trace.evaluate(job.symbols);
  const FlatTrace flat = expand(job.trace, bytes);
  std::int64_t live = 0, at_start = 0;
  std::vector<bool> alive(static_cast<std::size_t>(flat.tensors), false);
  for (std::size_t i = 0; i < flat.events.size(); ++i) {
    if (i == flat.billed_from) at_start = live;
    const FlatEvent& event = flat.events[i];
    if (event.kind != EventKind::allocate && event.kind != EventKind::release) continue;
    const bool makes = event.kind == EventKind::allocate;
    const auto number = static_cast<std::size_t>(event.number);
    if (alive[number] == makes) return std::nullopt;
    alive[number] = makes;
    live += (makes ? 1 : -1) * bytes[static_cast<std::size_t>(event.size)];
  }
  if (fold_peak(job.trace, bytes).highest <= 0) return std::nullopt;
  return live - at_start;
}

constexpr std::pair<std::int64_t, Loop> kSteps[] = {{1, Loop::trainer}, {2, Loop::trainer}, {3, Loop::trainer},
                                                    {5, Loop::trainer}, {1, Loop::plain},   {2, Loop::plain},
                                                    {3, Loop::plain},   {5, Loop::plain}};

void check_steps(const ModelSpec& model, const Case& of, std::int64_t rank) {
  for (const bool checkpointed : {false, true}) {
    for (const auto& [accumulate, loop] : kSteps) {
      if (of.virtual_pp > 1 && accumulate < of.pp) continue;
      TrainingPlan plan = plan_of(of, checkpointed);
      plan.accumulate = accumulate;
      plan.loop = loop;
      Hardware hardware;
      hardware.count = 4;
      hardware.rank = rank;
      INFO(of.name << ", rank " << rank << ", checkpointed " << checkpointed << ", accumulate " << accumulate);
      CHECK(validate(model, plan, hardware).empty());
      CHECK(left_by_step(simulate(model, plan, hardware)) == 0);
    }
  }
}

}  // namespace

TEST_CASE("sharding: two steps leave as much as one, whatever the engine") {
  for (const Case& of : cases()) check_steps(small_llama(), of, 0);
}

TEST_CASE("sharding: two steps leave as much as one on every stage of a pipeline") {
  for (const Case& of : pipelines())
    for (std::int64_t rank = 0; rank < 4; ++rank) check_steps(eight_layers(), of, rank);
}

TEST_CASE("sharding: the parameters of tensor-parallel ranks and stages sum to the model") {
  const ModelSpec model = eight_layers();
  for (const Case& of : pipelines()) {
    const TrainingPlan plan = plan_of(of, false);
    std::int64_t sum = 0;
    for (std::int64_t stage = 0; stage < of.pp; ++stage) {
      for (const Section& section : rank_model(model, plan, stage).sections)
        for (std::size_t layer = 0; layer < static_cast<std::size_t>(section.repeats()); ++layer) {
          const std::int32_t kind = section.layer_kinds.empty() ? 0 : section.layer_kinds[layer];
          for (const TensorSpec& tensor : section.kinds[static_cast<std::size_t>(kind)].tensors)
            sum += tensor.elements() * (tensor.split == SplitAxis::none ? 1 : of.tp);
        }
    }
    INFO(of.name);
    CHECK(sum == model.parameters());
  }
}

TEST_CASE("sharding: the experts of expert-parallel ranks sum to the model") {
  Problems problems;
  const ModelSpec model =
      find_family("mixtral")->describe(Value::make_map({{"model_type", Value::of("mixtral")},
                                                        {"hidden_size", Value::of(std::int64_t{128})},
                                                        {"intermediate_size", Value::of(std::int64_t{256})},
                                                        {"num_hidden_layers", Value::of(std::int64_t{2})},
                                                        {"num_attention_heads", Value::of(std::int64_t{4})},
                                                        {"num_key_value_heads", Value::of(std::int64_t{2})},
                                                        {"num_local_experts", Value::of(std::int64_t{8})},
                                                        {"num_experts_per_tok", Value::of(std::int64_t{2})},
                                                        {"vocab_size", Value::of(std::int64_t{512})}}),
                                       problems);
  const auto plan_with = [](std::int64_t ep, std::int64_t expert_tp) {
    TrainingPlan plan = plan_of({"experts", Engine::megatron, 1, "none"}, false);
    plan.parallel.ep = ep;
    plan.parallel.expert_tp = expert_tp;
    return plan;
  };
  for (const auto& [ep, expert_tp] : {std::pair{1, 1}, std::pair{2, 1}, std::pair{4, 2}, std::pair{8, 1}}) {
    std::int64_t sum = 0;
    const TrainingPlan plan = plan_with(ep, expert_tp);
    for (const Section& section : rank_model(model, plan, 0).sections)
      for (const LayerKind& kind : section.kinds)
        for (const TensorSpec& tensor : kind.tensors)
          sum += tensor.elements() * section.repeats() * (tensor.role == TensorRole::expert ? ep * expert_tp : 1);
    INFO("ep " << ep << ", expert_tp " << expert_tp);
    CHECK(sum == model.parameters());
    Hardware hardware;
    hardware.count = 8;
    hardware.rank = 3;
    CHECK(validate(model, plan, hardware).empty());
    CHECK(left_by_step(simulate(model, plan, hardware)) == 0);
  }
}

TEST_CASE("sharding: tied ends of a pipeline each hold the embedding") {
  ModelSpec model = eight_layers();
  model.tied_embeddings = true;
  const Case& two = pipelines()[1];
  const std::int64_t table = model.vocab * model.hidden;
  const auto parameters = [&](std::int64_t stage) {
    return rank_model(model, plan_of(two, false), stage).parameters();
  };
  CHECK(parameters(0) + parameters(1) == model.parameters());  // the model's own head is counted there
  const Case whole{"whole", Engine::megatron, 0, "none"};
  CHECK(rank_model(model, plan_of(whole, false), 0).parameters() == model.parameters() - table);
}

TEST_CASE("sharding: a model without a program is billed by every engine, whatever its gradients") {
  ModelSpec model = small_llama();
  model.model_type = "no_such_type";
  for (const Case& of : cases()) {
    if (of.engine == Engine::megatron) continue;
    for (const char* gradients : {"bf16", "fp32"}) {
      TrainingPlan plan = plan_of(of, true);
      if (of.engine == Engine::deepspeed && of.zero > 0) plan.sharding.engine_keys["grad_accum_dtype"] = gradients;
      Hardware hardware;
      hardware.count = 8;
      INFO(of.name << ", " << gradients);
      REQUIRE(validate(model, plan, hardware).empty());
      CHECK(estimate(model, plan, hardware).at_least);
    }
  }
}

}  // namespace membill
