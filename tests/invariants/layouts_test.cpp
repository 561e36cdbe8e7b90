// Random models in random Megatron layouts: what all ranks hold is the model, each parameter once, but for a tied matrix that both ends of
// a pipeline have.
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "estimate/rank_model.h"
#include "estimate/split_model.h"
#include "membill/catalog.h"
#include "membill/estimate.h"
#include "support/catch.h"

namespace membill {
namespace {

class Draw {
 public:
  explicit Draw(std::uint32_t seed) : engine_(seed) {}
  std::int64_t among(const std::vector<std::int64_t>& values) { return values[engine_() % values.size()]; }

 private:
  std::mt19937 engine_;
};

// Heads, widths and rows that eight ranks divide; layers that the stages do.
ModelSpec random_model(Draw& draw, std::int64_t layers) {
  static const std::vector<std::string> types{"llama", "qwen2", "qwen3", "mistral", "mixtral", "qwen3_moe"};
  const std::string& type = types[static_cast<std::size_t>(draw.among({0, 1, 2, 3, 4, 5}))];
  const std::int64_t heads = draw.among({8, 16, 32});
  Value config = Value::make_map({{"model_type", Value::of(type)}});
  const auto set = [&](const char* key, std::int64_t value) { config.set(key, Value::of(value)); };
  set("hidden_size", heads * draw.among({32, 64}));
  set("intermediate_size", 8 * draw.among({24, 40, 64}));
  set("moe_intermediate_size", 8 * draw.among({8, 24}));
  set("num_hidden_layers", layers);
  set("num_attention_heads", heads);
  set("num_key_value_heads", draw.among({8, heads}));
  set("head_dim", 32);
  set("vocab_size", 8 * draw.among({64, 125}));
  set("num_local_experts", 8);
  set("num_experts", 8);
  set("num_experts_per_tok", 2);
  config.set("tie_word_embeddings", Value::of(draw.among({0, 1}) == 1));
  Problems problems;
  return find_family(type)->describe(config, problems);
}

bool has_experts(const ModelSpec& model) { return model.parameters() != model.active_parameters(); }

TrainingPlan random_layout(Draw& draw, bool experts) {
  TrainingPlan plan;
  plan.engine = Engine::megatron;
  plan.implementation = Implementation::megatron;
  plan.seq = 64;
  ParallelPlan& p = plan.parallel;
  p.tp = draw.among({1, 2, 4, 8});
  p.sp = p.tp > 1;
  p.pp = draw.among({1, 2, 4});
  p.virtual_pp = p.pp > 1 ? draw.among({1, 2}) : 1;
  p.ep = experts ? draw.among({1, 2, 4}) : 1;
  p.expert_tp = experts ? draw.among({1, 2}) : 1;
  plan.accumulate = 4;
  return plan;
}

std::int64_t copies_of(const TensorSpec& tensor, const ParallelPlan& p) {
  const bool expert = tensor.role == TensorRole::expert;
  if (tensor.split == SplitAxis::none) return expert ? p.ep : 1;
  return expert ? p.ep * p.expert_tp : p.tp;
}

std::int64_t held_by_all(const ModelSpec& model, const TrainingPlan& plan) {
  std::int64_t sum = 0;
  for (std::int64_t stage = 0; stage < plan.parallel.pp; ++stage)
    for (const Section& section : rank_model(model, plan, stage).sections)
      for (std::size_t layer = 0; layer < static_cast<std::size_t>(section.repeats()); ++layer) {
        const std::size_t kind =
            section.layer_kinds.empty() ? 0U : static_cast<std::size_t>(section.layer_kinds[layer]);
        for (const TensorSpec& tensor : section.kinds[kind].tensors)
          sum += tensor.elements() * copies_of(tensor, plan.parallel);
      }
  return sum;
}

}  // namespace

TEST_CASE("random layouts: what all of Megatron's ranks hold sums to the model") {
  constexpr int kDraws = 400, kLeast = 200;
  int billed = 0;
  for (std::uint32_t seed = 0; seed < kDraws; ++seed) {
    Draw draw(seed);
    const ModelSpec model = random_model(draw, 8);
    const TrainingPlan plan = random_layout(draw, has_experts(model));
    Hardware hardware;
    hardware.count = plan.parallel.tp * plan.parallel.pp * plan.parallel.ep * plan.parallel.expert_tp;
    if (!validate(model, plan, hardware).empty()) continue;
    ++billed;
    INFO("seed " << seed << ", " << model.model_type << ", tp " << plan.parallel.tp << ", pp " << plan.parallel.pp
                 << ", ep " << plan.parallel.ep);
    const bool twice = model.tied_embeddings && plan.parallel.pp > 1;
    CHECK(held_by_all(model, plan) == model.parameters() + (twice ? model.vocab * model.hidden : 0));
  }
  CHECK(billed >= kLeast);
}

TEST_CASE("random models: what AutoTP's ranks hold sums to the model") {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    Draw draw(seed);
    const ModelSpec model = random_model(draw, 8);
    if (has_experts(model)) continue;
    const std::int64_t ranks = draw.among({2, 4, 8});
    std::int64_t sum = 0;
    for (const Section& section : split_model(model, ranks).sections)
      for (const TensorSpec& tensor : section.kinds.front().tensors) {
        const bool words = tensor.role == TensorRole::embedding && !model.tied_embeddings;
        const bool whole = tensor.split == SplitAxis::none || words;
        sum += tensor.buffer ? 0 : tensor.elements() * section.repeats() * (whole ? 1 : ranks);
      }
    INFO("seed " << seed << ", " << model.model_type << ", " << ranks << " ranks");
    CHECK(sum == model.parameters());
  }
}

}  // namespace membill
