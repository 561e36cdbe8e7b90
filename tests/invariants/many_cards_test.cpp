// Every engine with every way of sharding it, on models of several families: more cards never cost a card more, but for named buffers; a
// later ZeRO stage never holds more; what the ranks hold sums to the model.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "estimate/rank_model.h"
#include "membill/catalog.h"
#include "membill/estimate.h"
#include "support/catch.h"

namespace membill {
namespace {

using Config = std::vector<std::pair<std::string, Value>>;

ModelSpec describe(const std::string& type, const Config& config) {
  Problems problems;
  Value value = Value::make_map({{"model_type", Value::of(type)}});
  for (const auto& [key, entry] : config) value.set(key, entry);
  ModelSpec model = find_family(type)->describe(value, problems);
  REQUIRE(problems.empty());
  return model;
}

Value number(std::int64_t value) { return Value::of(value); }

// Four layers each; sizes that eight cards divide. Tied and untied heads, grouped queries, experts, biases, learned positions.
const std::vector<ModelSpec>& models() {
  const auto decoder = [](const std::string& type, const Config& more) {
    Config config{{"hidden_size", number(256)},       {"intermediate_size", number(512)},
                  {"num_hidden_layers", number(4)},   {"num_attention_heads", number(8)},
                  {"num_key_value_heads", number(8)}, {"vocab_size", number(1024)}};
    config.insert(config.end(), more.begin(), more.end());
    return describe(type, config);
  };
  static const std::vector<ModelSpec> all{
      decoder("llama", {}),
      decoder("qwen2", {{"tie_word_embeddings", Value::of(true)}}),
      decoder("mixtral", {{"num_local_experts", number(8)}, {"num_experts_per_tok", number(2)}}),
      describe("gpt2", {{"n_embd", number(256)},
                        {"n_layer", number(4)},
                        {"n_head", number(8)},
                        {"n_positions", number(128)},
                        {"vocab_size", number(1024)}}),
  };
  return all;
}

struct Mode {
  std::string name;
  Engine engine;
  std::int64_t zero = 0;
  std::string fsdp = "none", offload = "none";
  Method method = Method::full;
  WeightFormat weights = WeightFormat::bf16;
  std::map<std::string, std::string> keys = {};
};

std::vector<Mode> modes() {
  std::vector<Mode> all{{"ddp", Engine::ddp}, {"zero 0", Engine::deepspeed}};
  for (const std::int64_t zero : {1, 2, 3}) {
    const std::string name = "zero " + std::to_string(zero);
    all.push_back({name, Engine::deepspeed, zero});
    all.push_back({name + ", optimizer on the host", Engine::deepspeed, zero, "none", "optimizer"});
    all.push_back({name + ", lora", Engine::deepspeed, zero, "none", "none", Method::lora});
    all.push_back({name + ", fp32 gradients",
                   Engine::deepspeed,
                   zero,
                   "none",
                   "none",
                   Method::full,
                   WeightFormat::bf16,
                   {{"grad_accum_dtype", "fp32"}}});
    if (zero < 3)
      all.push_back({name + ", torch_autocast",
                     Engine::deepspeed,
                     zero,
                     "none",
                     "none",
                     Method::full,
                     WeightFormat::fp32,
                     {{"torch_autocast", "true"}}});
  }
  all.push_back({"zero 3, all on the host", Engine::deepspeed, 3, "none", "optimizer+param"});
  for (const Engine engine : {Engine::fsdp, Engine::fsdp2})
    for (const char* shards : {"full_shard", "shard_grad_op"}) {
      const std::string name = (engine == Engine::fsdp ? "fsdp1 " : "fsdp2 ") + std::string(shards);
      all.push_back({name, engine, 0, shards, "none", Method::full, WeightFormat::fp32});
      all.push_back({name + ", on the host", engine, 0, shards, "param", Method::full, WeightFormat::fp32});
      all.push_back({name + ", lora", engine, 0, shards, "none", Method::lora});
      all.push_back(
          {name + ", qlora", engine, 0, shards, "none", Method::lora, WeightFormat::nf4, {{"quant_storage", "bf16"}}});
    }
  for (const std::int64_t zero : {0, 1}) all.push_back({"megatron " + std::to_string(zero), Engine::megatron, zero});
  return all;
}

TrainingPlan plan_on_cards(const Mode& mode, bool checkpointed) {
  TrainingPlan plan;
  plan.engine = mode.engine;
  plan.sharding.zero = mode.zero;
  plan.sharding.fsdp = mode.fsdp;
  plan.sharding.offload = mode.offload;
  plan.sharding.engine_keys = mode.keys;
  plan.sharding.engine_keys["reduce_bucket_size"] = "100000";
  plan.method = mode.method;
  plan.adapter.targets = {"all-linear"};
  plan.weights = mode.weights;
  plan.seq = 64;
  if (checkpointed) plan.checkpointing.mode = Checkpointing::full;
  return plan;
}

struct Held {
  std::int64_t states = 0, kept = 0;  // of parameters and optimizer; all at the peak but the engine's own buffers
};

Held held_by(const ModelSpec& model, const TrainingPlan& plan, std::int64_t cards) {
  Hardware hardware;
  hardware.count = cards;
  EstimateOptions options;
  options.replay = false;
  Held held;
  for (const LineItem& line : estimate(model, plan, hardware, options).items) {
    if (line.where != Place::device) continue;
    const bool buffer = line.id.rfind("buffers.", 0) == 0 || line.id.rfind("gathered.", 0) == 0;
    if (!buffer) held.kept += line.at_peak.value_or(0);
    if (line.id.rfind("weights.", 0) == 0 || line.id.rfind("optimizer.", 0) == 0) held.states += line.bytes.value_or(0);
  }
  return held;
}

// Partitions are aligned and rows padded, tensor by tensor.
std::int64_t padding(std::int64_t cards) { return 4096 * cards; }

std::string label(const ModelSpec& model, const Mode& mode, bool checkpointed) {
  return model.model_type + ", " + mode.name + (checkpointed ? ", checkpointed" : "");
}

// Calls `check` for every model, mode and checkpointing that is billed.
template <typename Check>
void on_all(Check check) {
  std::size_t billed = 0;
  for (const ModelSpec& model : models())
    for (const Mode& mode : modes())
      for (const bool checkpointed : {false, true}) {
        const TrainingPlan plan = plan_on_cards(mode, checkpointed);
        Hardware two;
        two.count = 2;
        if (!validate(model, plan, two).empty()) continue;
        ++billed;
        INFO(label(model, mode, checkpointed));
        check(model, mode, plan);
      }
  CHECK(billed >= models().size() * modes().size() * 2 * 9 / 10);
}

}  // namespace

TEST_CASE("many cards: more of them never cost one more, but for named buffers") {
  on_all([](const ModelSpec& model, const Mode&, const TrainingPlan& plan) {
    Held before = held_by(model, plan, 2);
    for (const std::int64_t cards : {4, 8, 64}) {
      const Held now = held_by(model, plan, cards);
      INFO(cards << " cards");
      CHECK(now.states <= before.states + padding(cards));
      CHECK(now.kept <= before.kept + padding(cards));
      before = now;
    }
  });
}

TEST_CASE("many cards: a ZeRO stage never holds more than the one before it") {
  on_all([](const ModelSpec& model, const Mode& mode, const TrainingPlan& plan) {
    if (plan.engine != Engine::deepspeed || mode.zero == 0) return;
    TrainingPlan earlier = plan;
    earlier.sharding.zero = mode.zero - 1;
    Hardware eight;
    eight.count = 8;
    if (!validate(model, earlier, eight).empty()) return;
    CHECK(held_by(model, plan, 8).states <= held_by(model, earlier, 8).states + padding(8));
  });
}

TEST_CASE("many cards: what tensor-parallel ranks and stages hold sums to the model, whatever the family") {
  for (const ModelSpec& model : models())
    for (const std::int64_t tp : {1, 2, 4, 8})
      for (const std::int64_t pp : {1, 2, 4}) {
        TrainingPlan plan;
        plan.engine = Engine::megatron;
        plan.implementation = Implementation::megatron;
        plan.parallel.tp = tp;
        plan.parallel.pp = pp;
        plan.parallel.sp = tp > 1;
        plan.parallel.expert_tp = tp;
        plan.seq = 64;
        Hardware hardware;
        hardware.count = tp * pp;
        if (!validate(model, plan, hardware).empty()) continue;
        std::int64_t sum = 0;
        for (std::int64_t stage = 0; stage < pp; ++stage)
          for (const Section& section : rank_model(model, plan, stage).sections)
            for (std::size_t layer = 0; layer < static_cast<std::size_t>(section.repeats()); ++layer) {
              const auto kind = section.layer_kinds.empty() ? 0U : static_cast<std::size_t>(section.layer_kinds[layer]);
              for (const TensorSpec& tensor : section.kinds[kind].tensors)
                sum += tensor.elements() * (tensor.split == SplitAxis::none ? 1 : tp);
            }
        INFO(model.model_type << ", tp " << tp << ", pp " << pp);
        CHECK(sum >= model.parameters() - (model.tied_embeddings ? model.vocab * model.hidden : 0));
        CHECK(sum <= model.parameters() + (model.tied_embeddings && pp > 1 ? model.vocab * model.hidden : 0));
      }
}

TEST_CASE("many cards: a longer pipeline or more tensor parallelism never costs a card more states") {
  for (const ModelSpec& model : models()) {
    const auto states = [&](std::int64_t tp, std::int64_t pp) {
      TrainingPlan plan;
      plan.engine = Engine::megatron;
      plan.parallel.tp = tp;
      plan.parallel.pp = pp;
      plan.parallel.sp = tp > 1;
      plan.parallel.expert_tp = model.model_type == "mixtral" ? tp : 1;  // Megatron's default
      plan.sharding.zero = 1;
      plan.seq = 64;
      plan.accumulate = pp;
      Hardware hardware;
      hardware.count = 8;
      if (!validate(model, plan, hardware).empty()) return std::int64_t{-1};
      return held_by(model, plan, 8).states;
    };
    for (const auto& [tp, pp] : {std::pair{2, 1}, std::pair{4, 1}, std::pair{8, 1}, std::pair{1, 2}, std::pair{2, 2}}) {
      const std::int64_t now = states(tp, pp);
      INFO(model.model_type << ", tp " << tp << ", pp " << pp);
      if (now >= 0 && !model.tied_embeddings) CHECK(now <= states(1, 1) + padding(8));
    }
  }
}

}  // namespace membill
