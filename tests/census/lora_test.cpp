// Trainable parameters and adapted modules of LoRA and DoRA, as PEFT makes them.
#include <map>
#include <string>

#include "catalog/adapters.h"
#include "facts.h"
#include "support/catch.h"

namespace membill::census_test {

namespace {

AdapterPlan plan_of(const Json& fact) {
  AdapterPlan plan;
  plan.rank = fact.at("r").get<std::int64_t>();
  const Json& targets = fact.at("targets");
  if (targets.is_array()) plan.targets = targets.get<std::vector<std::string>>();
  if (targets == "all-linear") plan.targets = {"all-linear"};
  if (fact.contains("target_parameters")) {
    for (const Json& name : fact.at("target_parameters")) plan.targets.push_back(name.get<std::string>());
  }
  return plan;
}

std::map<std::string, std::int64_t> layers_by_name(const AdapterMatch& match) {
  std::map<std::string, std::int64_t> result;
  for (const AdaptedModule& module : match.modules) {
    std::string name = module.name;
    const std::size_t layer = name.find(".layer.");
    if (layer != std::string::npos && name[layer + 7] != '*') name[layer + 7] = '*';
    result[name] += static_cast<std::int64_t>(module.layers.size());
  }
  return result;
}

std::map<std::string, Value> configs() {
  std::map<std::string, Value> result;
  for (const char* file : {"models.jsonl", "public-configs.jsonl"}) {
    for (const Json& fact : read_facts(file)) {
      if (fact.contains("name") && !fact.contains("part"))
        result[fact.at("name").get<std::string>()] = resolved_config(fact);
    }
  }
  return result;
}

}  // namespace

TEST_CASE("adapters of published models") {
  const std::map<std::string, Value> models = configs();
  for (const Json& fact : read_facts("lora-counts.jsonl")) {
    INFO(fact.dump());
    const ModelSpec spec = describe(models.at(fact.at("model").get<std::string>()));
    const Method method = fact.at("dora").get<bool>() ? Method::dora : Method::lora;
    const AdapterMatch match = match_adapter_targets(spec, plan_of(fact), method);
    if (fact.at("trainable").is_null()) {
      CHECK_FALSE(match.failure.empty());
      continue;
    }
    CHECK(match.failure == "");
    CHECK(match.parameters(method) == fact.at("trainable").get<std::int64_t>());
    CHECK(layers_by_name(match) == fact.at("modules").get<std::map<std::string, std::int64_t>>());
  }
}

// Counts of PEFT 0.21.2 (get_peft_model on the meta device).
TEST_CASE("adapters of some layers, with ranks of their own and biases") {
  const ModelSpec llama = describe(configs().at("meta-llama/Llama-2-7b-hf"));
  AdapterPlan plan;
  plan.targets = {"q_proj", "v_proj", "down_proj"};
  plan.layers = {1, 3, 31};
  CHECK(match_adapter_targets(llama, plan, Method::lora).parameters(Method::lora) == 3 * 8 * (2 * 8192 + 15104));
  plan.layers = {};
  plan.exclude = {"layers.2.self_attn.q_proj", "down_proj"};
  AdapterMatch match = match_adapter_targets(llama, plan, Method::lora);
  CHECK(match.parameters(Method::lora) == 8 * 8192 * (31 + 32));
  CHECK(match.ranks_in(1, 2) != match.ranks_in(1, 3));
  plan.exclude = {};
  plan.rank_pattern = {{"down_proj", 32}, {"layers.0.self_attn.v_proj", 4}};
  plan.lora_bias = true;
  match = match_adapter_targets(llama, plan, Method::lora);
  CHECK(match.parameters(Method::lora) ==
        8 * 8192 * (32 + 31) + 4 * 8192 + 32 * 32 * 15104 + 32 * (4096 + 4096 + 4096));
  plan.exclude = {".*"};
  CHECK(match_adapter_targets(llama, plan, Method::lora).failure == "no module of the model is a target");
}

TEST_CASE("adapter targets as patterns and mistakes") {
  const std::map<std::string, Value> models = configs();
  const ModelSpec llama = describe(models.at("meta-llama/Llama-2-7b-hf"));
  AdapterPlan plan;
  plan.targets = {R"(model\.layers\.(0|1|31)\..*\.(q|v)_proj)"};
  AdapterMatch match = match_adapter_targets(llama, plan, Method::lora);
  CHECK(match.failure == "");
  CHECK(match.parameters(Method::lora) == 3 * 2 * 8 * (4096 + 4096));
  CHECK(match.modules.at(0).layers == std::vector<std::int64_t>{0, 1, 31});

  plan.targets = {"(unfinished"};
  CHECK(match_adapter_targets(llama, plan, Method::lora).failure == "'(unfinished' is no regular expression");
  plan.targets = {"((((a*)*)*)*)*b"};
  CHECK_FALSE(match_adapter_targets(llama, plan, Method::lora).failure.empty());

  plan.targets = {"q_prj", "v_proj"};
  match = match_adapter_targets(llama, plan, Method::lora);
  CHECK(match.failure == "");
  REQUIRE(match.unmatched.size() == 1);
  CHECK(match.unmatched[0].nearest == "q_proj");

  plan.targets = {"input_layernorm"};
  CHECK(match_adapter_targets(llama, plan, Method::lora).failure ==
        "'input_layernorm' is a norm, which can have no adapter");
  plan.targets = {"ALL-linear"};
  CHECK(match_adapter_targets(llama, plan, Method::lora).modules.size() == 7);
  plan.targets = {"embed_tokens", "lm_head"};
  CHECK(match_adapter_targets(llama, plan, Method::lora).parameters(Method::lora) == 2 * 8 * (32000 + 4096));

  const ModelSpec tied = describe(models.at("meta-llama/Llama-3.2-1B"));
  plan.targets = {"lm_head"};
  match = match_adapter_targets(tied, plan, Method::lora);
  REQUIRE(match.modules.size() == 1);
  CHECK(match.modules[0].tied_head);

  const ModelSpec moe = describe(models.at("Qwen/Qwen3-30B-A3B"));
  plan.targets = {"gate_proj", "down_proj"};
  CHECK(match_adapter_targets(moe, plan, Method::lora).failure ==
        "'gate_proj' is one half of gate_up_proj: name 'up_proj' too");
}

}  // namespace membill::census_test
