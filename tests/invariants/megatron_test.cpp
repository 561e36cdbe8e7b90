// Megatron's layouts: more ranks never cost a rank more, what stays in parts never costs more than what stays whole, every group that
// communicates has its line, and what a step makes it frees.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "estimate/communicators.h"
#include "estimate/rank_model.h"
#include "membill/catalog.h"
#include "membill/estimate.h"
#include "membill/vision_part.h"
#include "support/catch.h"
#include "support/preset.h"
#include "support/small_llama.h"

namespace membill {
namespace {

ModelSpec small_mixtral() {
  Problems problems;
  return find_family("mixtral")->describe(Value::make_map({{"model_type", Value::of("mixtral")},
                                                           {"hidden_size", Value::of(std::int64_t{512})},
                                                           {"intermediate_size", Value::of(std::int64_t{1024})},
                                                           {"num_hidden_layers", Value::of(std::int64_t{4})},
                                                           {"num_attention_heads", Value::of(std::int64_t{8})},
                                                           {"num_key_value_heads", Value::of(std::int64_t{8})},
                                                           {"num_local_experts", Value::of(std::int64_t{8})},
                                                           {"num_experts_per_tok", Value::of(std::int64_t{2})},
                                                           {"vocab_size", Value::of(std::int64_t{2048})}}),
                                          problems);
}

TrainingPlan megatron(std::int64_t tp, std::int64_t pp, std::int64_t ep) {
  TrainingPlan plan;
  plan.engine = Engine::megatron;
  plan.implementation = Implementation::megatron;
  plan.precision = Precision::master_bf16;
  plan.optimizer_impl = OptimizerImpl::fused;
  plan.attention = AttentionKernel::flash;
  plan.loop = Loop::plain;
  plan.sharding.zero = 1;
  plan.seq = 256;
  plan.batch = 2;
  plan.accumulate = 2;
  plan.parallel.tp = tp;
  plan.parallel.sp = tp > 1;
  plan.parallel.pp = pp;
  plan.parallel.ep = ep;
  return plan;
}

std::int64_t item(const Report& report, const char* id) {
  for (const LineItem& line : report.items)
    if (line.id == id) return line.at_peak.value_or(0);
  return 0;
}

Report bill(const ModelSpec& model, const TrainingPlan& plan, std::int64_t cards,
            std::optional<std::int64_t> rank = {}) {
  Hardware hardware;
  hardware.count = cards;
  hardware.rank = rank;
  const std::vector<Problem> problems = validate(model, plan, hardware);
  INFO((problems.empty() ? "" : problems.front().key + ": " + problems.front().message));
  REQUIRE(problems.empty());
  EstimateOptions options;
  options.replay = false;
  return estimate(model, plan, hardware, options);
}

// Without the buffers that the layout adds.
std::int64_t own_bytes(const Report& report) {
  return *report.totals.requested.likely - item(report, "buffers.tensor_parallel") - item(report, "buffers.pipeline") -
         item(report, "buffers.routing");
}

}  // namespace

TEST_CASE("megatron: more tensor-parallel, pipeline and expert-parallel ranks never cost a rank more") {
  const ModelSpec model = small_mixtral();
  for (const bool gathers : {false, true})
    for (const Checkpointing mode : {Checkpointing::none, Checkpointing::full}) {
      const auto of = [&](std::int64_t tp, std::int64_t pp, std::int64_t ep) {
        TrainingPlan plan = megatron(tp, pp, ep);
        if (ep == 1) plan.parallel.expert_tp = tp;  // Megatron's default: else experts stay whole on every rank
        plan.checkpointing.mode = mode;
        plan.sharding.engine_keys["moe_token_dispatcher_type"] = gathers ? "allgather" : "alltoall";
        return own_bytes(bill(model, plan, 8));
      };
      INFO((gathers ? "allgather" : "alltoall") << ", recompute " << (mode == Checkpointing::full));
      for (const std::int64_t degree : {1, 2, 4}) {
        CHECK(of(2 * degree, 1, 1) <= of(degree, 1, 1));
        if (degree < 4) CHECK(of(1, 2 * degree, 1) <= of(1, degree, 1));
        CHECK(of(1, 1, 2 * degree) <= of(1, 1, degree) + of(1, 1, degree) / 50);  // both ends of an exchange at once
      }
    }
}

TEST_CASE("megatron: adapters are on its joined linears, and counted once for all ranks") {
  TrainingPlan plan = megatron(1, 1, 1);
  plan.method = Method::lora;
  plan.adapter.rank = 4;
  plan.adapter.targets = {"q_proj", "down_proj"};
  Hardware eight;
  eight.count = 8;
  const ModelSpec model = test::small_llama();
  const Report whole = bill(model, plan, 8);
  plan.parallel.tp = 2;
  plan.parallel.sp = true;
  const Report split = bill(model, plan, 8);
  CHECK(split.model.trainable_parameters == whole.model.trainable_parameters);
  CHECK(item(whole, "weights.adapter") > 0);
  plan.adapter.targets = {"linear_qkv", "linear_fc2"};
  CHECK(*bill(model, plan, 8).totals.requested.likely == *split.totals.requested.likely);
  plan.adapter.targets = {"no_such_linear"};
  CHECK(!validate(model, plan, eight).empty());
  plan.adapter.targets = {"all-linear"};
  CHECK(*bill(model, plan, 8).model.trainable_parameters > *split.model.trainable_parameters);
  plan.adapter.modules_to_save = {"lm_head"};
  CHECK(!validate(model, plan, eight).empty());
}

TEST_CASE("megatron: a vision tower is on the ranks of the first stage, whole and idle") {
  const ModelSpec model = test::preset("qwen2.5-vl-3b-instruct");
  std::int64_t tower = 0;
  for (const Section& section : model.sections)
    for (const TensorSpec& tensor : section.kinds.front().tensors)
      if (is_vision_part(section)) tower += tensor.elements();
  REQUIRE(tower > 0);
  TrainingPlan plan = megatron(1, 2, 1);
  const Report report = bill(model, plan, 2, 0);
  CHECK(report.model.trainable_parameters == model.parameters() - tower);
  const auto parameters = [&](std::int64_t stage) { return rank_model(model, plan, stage).parameters(); };
  const std::int64_t table = model.tied_embeddings ? model.vocab * model.hidden : 0;
  CHECK(parameters(0) + parameters(1) == model.parameters() + table);
  CHECK(item(report, "weights.base") >= 2 * parameters(0));
}

TEST_CASE("megatron: a classifier's config is trained as the language model that Megatron's GPT is") {
  ModelSpec model = test::small_llama();
  const Report report = bill(model, megatron(2, 1, 1), 4);
  model.labels = 3;
  const Report classifier = bill(model, megatron(2, 1, 1), 4);
  CHECK(*classifier.totals.requested.likely == *report.totals.requested.likely);
  CHECK(!classifier.at_least);
}

TEST_CASE("megatron: experts that nothing divides are warned of") {
  TrainingPlan plan = megatron(2, 1, 1);
  const auto warns = [&] {
    const std::vector<std::string> warnings = bill(small_mixtral(), plan, 8).warnings;
    return std::any_of(warnings.begin(), warnings.end(), [](const std::string& warning) {
      return warning.find("experts stay whole on every tensor-parallel rank") != std::string::npos;
    });
  };
  CHECK(warns());
  plan.parallel.expert_tp = 2;
  CHECK(!warns());
}

TEST_CASE("megatron: saved activations in parts never cost more") {
  for (const std::int64_t group : {1, 7}) {
    TrainingPlan plan = megatron(2, 1, 1);
    plan.parallel.sp = false;
    plan.checkpointing.mode = Checkpointing::full;
    plan.checkpointing.method = "uniform";
    plan.checkpointing.layers = group;
    const Report whole = bill(test::small_llama(), plan, 4);
    plan.sharding.engine_keys["distribute_saved_activations"] = "true";
    const Report parts = bill(test::small_llama(), plan, 4);
    CHECK(*parts.totals.requested.likely <= *whole.totals.requested.likely);
    if (group == 1) CHECK(item(parts, "activations.boundaries") < item(whole, "activations.boundaries"));
  }
}

TEST_CASE("megatron: modules that are recomputed keep no more than before") {
  const auto kept = [](const std::vector<std::string>& modules) {
    TrainingPlan plan = megatron(2, 1, 2);
    plan.accumulate = 1;
    plan.sharding.engine_keys["moe_grouped_gemm"] = "true";
    if (!modules.empty()) plan.checkpointing.mode = Checkpointing::selective;
    plan.checkpointing.selective = modules;
    for (const Moment& moment : bill(small_mixtral(), plan, 2).moments)
      if (moment.name == "forward") return moment.end;
    return std::int64_t{0};
  };
  const std::int64_t all = kept({});
  // Four layers: two norms of 256 rows, 512 numbers in 16 bits and one in 32; the products of 1024 rows, 512 wide, in 16 bits.
  CHECK(all - kept({"layernorm"}) == 4 * 2 * 256 * (512 * 2 + 4));
  CHECK(all - kept({"moe_act"}) == 4 * 1024 * 512 * 2);
  CHECK(kept({"layernorm", "moe_act"}) == kept({"layernorm"}) + kept({"moe_act"}) - all);
}

TEST_CASE("megatron: experts that are recomputed leave their input and its gradient to the next forward") {
  const auto at_rest = [](Checkpointing mode, std::int64_t accumulate) {
    TrainingPlan plan = megatron(1, 1, 2);
    plan.checkpointing.mode = mode;
    plan.accumulate = accumulate;
    for (const Moment& moment : bill(small_mixtral(), plan, 2).moments)
      if (moment.name == "zero") return moment.end;
    return std::int64_t{0};
  };
  // Four layers, each with 512 rows of 512 numbers and their gradient in 16 bits.
  for (const std::int64_t accumulate : {1, 2, 5})
    CHECK(at_rest(Checkpointing::full, accumulate) - at_rest(Checkpointing::none, accumulate) == 4 * 2 * 512 * 512 * 2);
}

TEST_CASE("communicators: a line for each group that the layout makes") {
  const auto ids = [](const TrainingPlan& plan, std::int64_t cards, std::optional<std::int64_t> rank = {},
                      bool tied = false) {
    Hardware hardware;
    hardware.count = cards;
    hardware.rank = rank;
    std::string text;
    for (const Communicator& one : communicators(plan, hardware, tied)) {
      std::string id(one.id.substr(std::string_view("runtime.communicator").size()));
      text += (text.empty() ? "" : " ") + (id.empty() ? "all" : id.substr(1)) + ":" + std::to_string(one.ranks);
      CHECK(*one.bytes.low <= *one.bytes.likely);
      CHECK(*one.bytes.likely <= *one.bytes.high);
    }
    return text;
  };
  TrainingPlan ddp;
  ddp.engine = Engine::ddp;
  CHECK(ids(ddp, 1).empty());
  CHECK(ids(ddp, 8) == "all:8");
  TrainingPlan zero;
  zero.engine = Engine::deepspeed;
  CHECK(ids(zero, 8) == "all:8 data:8");
  TrainingPlan hybrid;
  hybrid.engine = Engine::fsdp2;
  hybrid.sharding.fsdp = "hybrid_shard";
  hybrid.sharding.shard_group = 4;
  CHECK(ids(hybrid, 16) == "all:16 shard:4 data:4");
  CHECK(ids(megatron(2, 2, 1), 16) == "all:16 tensor:2 pipeline:2 data:4 model:16");
  CHECK(ids(megatron(2, 1, 4), 16) == "all:16 tensor:2 data:8 model:16 expert:4 expert_model:4 expert_data:4");
  // The ends of a pipeline share a tied embedding; those between do not.
  CHECK(ids(megatron(2, 4, 1), 8, 0, true) == "all:8 tensor:2 pipeline:4 embedding:2 model:8");
  CHECK(ids(megatron(2, 4, 1), 8, 7, true) == "all:8 tensor:2 pipeline:4 embedding:2 model:8");
  CHECK(ids(megatron(2, 4, 1), 8, 3, true) == "all:8 tensor:2 pipeline:4 model:8");
  CHECK(ids(megatron(2, 1, 1), 8, 0, true) == "all:8 tensor:2 data:4 model:8");
  TrainingPlan experts = megatron(2, 2, 4);
  experts.sharding.zero = 0;
  experts.sharding.engine_keys = {{"moe_router_load_balancing_type", "aux_loss"},
                                  {"moe_token_dispatcher_type", "allgather"}};
  CHECK(ids(experts, 16) ==
        "all:16 tensor:2 pipeline:2 data:4 model:4 router:2 expert_model:4 expert_data:2 expert_norm:8");
  zero.sharding.zero = 3;
  zero.sharding.engine_keys["mics_shard_size"] = "4";
  CHECK(ids(zero, 8) == "all:8 data:8 shard:4 replica:2");
}

TEST_CASE("communicators: the bill has their lines and the device total their sum") {
  const TrainingPlan plan = megatron(2, 2, 1);
  Hardware hardware;
  hardware.count = 8;
  const Range sum = communicator_bytes(plan, hardware);
  Range lines = Range::exact(0);
  for (const LineItem& line : bill(small_mixtral(), plan, 8).items) {
    if (line.id.rfind("runtime.communicator", 0) != 0) continue;
    CHECK_FALSE(line.source.empty());
    lines = {*lines.low + *line.low, *lines.likely + *line.bytes, *lines.high + *line.high};
  }
  CHECK(lines == sum);
}

}  // namespace membill
