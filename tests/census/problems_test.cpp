// Missing and impossible values of a config, and generic models.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "facts.h"
#include "support/catch.h"
#include "support/places.h"

namespace membill::census_test {

namespace {

std::vector<Problem> problems_of(const std::string& config) {
  const Value value = to_value(Json::parse(config));
  Problems problems;
  (void)find_family(value.find("model_type")->as_string())->describe(value, problems);
  return problems.list();
}

void check_one(const std::string& config, const std::string& key, const std::string& message) {
  INFO(config);
  const std::vector<Problem> found = problems_of(config);
  std::string all;
  for (const Problem& one : found) all += one.key + ": " + one.message + "\n";
  INFO(all);
  REQUIRE(found.size() == 1);
  CHECK(found[0].key == key);
  CHECK(found[0].message == message);
}

std::string llama_with(const std::string& change) {
  Json config = Json::parse(R"({"model_type":"llama","vocab_size":32000,"hidden_size":4096,"intermediate_size":11008,
    "num_hidden_layers":32,"num_attention_heads":32})");
  config.update(Json::parse(change));
  return config.dump();
}

ModelSpec generic(const GenericModel& given) {
  Problems problems;
  ModelSpec spec = generic_model(given, problems);
  for (const Problem& problem : problems.list()) UNSCOPED_INFO(problem.key + ": " + problem.message);
  REQUIRE(problems.empty());
  return spec;
}

}  // namespace

TEST_CASE("each wanted type is known and has class defaults") {
  const std::vector<std::string> wanted = {
      "llama",    "mistral",     "mixtral",     "qwen",      "qwen2",      "qwen2_moe",   "qwen3",       "qwen3_moe",
      "gemma",    "gemma2",      "gemma3_text", "phi",       "phi3",       "phimoe",      "gpt2",        "gpt_bigcode",
      "gpt_neox", "gptj",        "opt",         "bloom",     "falcon",     "mpt",         "stablelm",    "starcoder2",
      "olmo",     "olmo2",       "olmoe",       "granite",   "granitemoe", "cohere",      "cohere2",     "chatglm",
      "glm",      "glm4",        "glm4_moe",    "internlm2", "baichuan",   "deepseek_v2", "deepseek_v3", "kimi_k2",
      "dbrx",     "gpt_oss",     "smollm3",     "seed_oss",  "minimax_m2", "nemotron",    "minicpm",     "exaone4",
      "ernie4_5", "llama4_text", "bert",        "roberta",   "t5"};
  for (const std::string& type : wanted) {
    INFO(type);
    CHECK(find_family(type) != nullptr);
  }
  for (const Family& family : families()) {
    INFO(family.model_type);
    CHECK_FALSE(family.class_name.empty());
    const std::string file = test::in_source("data/defaults/") + std::string(family.model_type) + ".json";
    CHECK(std::filesystem::exists(file));
    CHECK(std::count_if(families().begin(), families().end(),
                        [&](const Family& other) { return other.model_type == family.model_type; }) == 1);
  }
  CHECK(find_family("lama") == nullptr);
}

TEST_CASE("an impossible value is a problem with its key") {
  check_one(llama_with(R"({"num_hidden_layers":0})"), "num_hidden_layers", "must be at least 1, not 0");
  check_one(llama_with(R"({"hidden_size":-4096,"head_dim":128})"), "hidden_size", "must be at least 1, not -4096");
  check_one(llama_with(R"({"vocab_size":3.5})"), "vocab_size", "must be a whole number, not a number");
  check_one(llama_with(R"({"vocab_size":"many"})"), "vocab_size", "must be a whole number, not text");
  check_one(llama_with(R"({"num_hidden_layers":1000000000000})"), "num_hidden_layers",
            "is larger than any model's (at most 100000)");
  check_one(llama_with(R"({"num_attention_heads":33})"), "num_attention_heads",
            "33 heads do not divide a hidden size of 4096 and no head_dim is given");
  check_one(llama_with(R"({"num_key_value_heads":5})"), "num_key_value_heads",
            "5 key/value heads do not divide 32 attention heads");
  check_one(llama_with(R"({"attention_dropout":1.5})"), "attention_dropout", "must lie between 0 and 1");
  check_one(llama_with(R"({"attention_bias":"yes"})"), "attention_bias", "must be true or false, not text");
  check_one(R"({"model_type":"gpt2","vocab_size":50257,"n_embd":768,"n_layer":0,"n_head":12,"n_positions":1024})",
            "n_layer", "must be at least 1, not 0");
}

TEST_CASE("what a family does not model is a problem with its key") {
  const std::string sizes = R"("vocab_size":1000,"hidden_size":64,"intermediate_size":128,"num_hidden_layers":4,
    "num_attention_heads":4,"max_position_embeddings":64)";
  const auto with = [&](const std::string& rest) { return "{" + sizes + "," + rest + "}"; };
  check_one(with(R"("model_type":"deberta-v2","relative_attention":true,"pos_att_type":"c2p")"), "pos_att_type",
            "only both kinds of relative attention are modelled");
  check_one(with(R"("model_type":"deberta-v2","conv_kernel_size":3)"), "conv_kernel_size",
            "the convolution behind the first layer is not modelled");
  check_one(with(R"("model_type":"lfm2","conv_bias":true)"), "conv_bias",
            "biases of the convolutions are not modelled");
  check_one(with(R"("model_type":"lfm2","layer_types":["conv"])"), "layer_types",
            "names 1 layers, but the model has 4");
  check_one(
      with(
          R"("model_type":"granitemoehybrid","mamba_n_groups":1,"mamba_d_state":16,"mamba_d_conv":4,"mamba_expand":2,"mamba_chunk_size":16,"shared_intermediate_size":32,"mamba_n_heads":8,"mamba_d_head":8,"num_experts_per_tok":2)"),
      "mamba_n_heads", "8 heads of width 8 do not make an inner width of 128");
  check_one(
      with(
          R"("model_type":"granitemoehybrid","mamba_n_groups":1,"mamba_d_state":16,"mamba_d_conv":4,"mamba_expand":2,"mamba_chunk_size":16,"shared_intermediate_size":32,"mamba_n_heads":8,"layer_types":["mamba"])"),
      "layer_types", "names 1 layers, but the model has 4");
  check_one(
      with(
          R"("model_type":"falcon_h1","mamba_d_state":16,"mamba_d_conv":4,"mamba_chunk_size":16,"mamba_d_ssm":64,"mamba_n_heads":8,"mamba_n_groups":3)"),
      "mamba_n_groups", "3 groups do not divide 8 heads");
  check_one(
      with(
          R"("model_type":"nemotron_h","mamba_num_heads":8,"mamba_head_dim":8,"n_groups":1,"ssm_state_size":16,"conv_kernel":4,"chunk_size":16,"hybrid_override_pattern":"M-X")"),
      "hybrid_override_pattern", "'X' is no layer");
  check_one(with(R"("model_type":"mllama_text_model","cross_attention_layers":[4])"), "cross_attention_layers",
            "names layer 4, but the model has 4");
  check_one(with(R"("model_type":"gemma4_text","head_dim":16,"num_kv_shared_layers":4)"), "num_kv_shared_layers",
            "leaves no layer of each type that has keys and values");
}

TEST_CASE("independent problems are found together") {
  const std::vector<Problem> found =
      problems_of(R"({"model_type":"qwen2_moe","hidden_size":0,"num_attention_heads":"x"})");
  std::vector<std::string> keys;
  for (const Problem& problem : found) keys.push_back(problem.key);
  for (const char* key :
       {"hidden_size", "num_attention_heads", "vocab_size", "num_hidden_layers", "intermediate_size", "num_experts"}) {
    INFO(key);
    CHECK(std::count(keys.begin(), keys.end(), key) == 1);
  }
}

TEST_CASE("layer lists must name every layer") {
  const std::string config =
      R"({"model_type":"gpt_oss","vocab_size":1000,"hidden_size":64,"intermediate_size":64,"head_dim":16,
    "num_hidden_layers":3,"num_attention_heads":4,"num_experts":8,"num_experts_per_tok":2,"layer_types":["full_attention"]})";
  check_one(config, "layer_types", "names 1 layers, but the model has 3");
}

TEST_CASE("counts that leave 64 bits throw") {
  const Value config = to_value(Json::parse(llama_with(
      R"({"vocab_size":1073741824,"hidden_size":1073741824,"intermediate_size":1073741824,"num_hidden_layers":100000,"head_dim":128})")));
  Problems problems;
  const ModelSpec spec = find_family("llama")->describe(config, problems);
  REQUIRE(problems.empty());
  CHECK_THROWS_AS(spec.parameters(), OverflowError);
}

TEST_CASE("a spelling of the file wins over a class default") {
  const Value defaults =
      to_value(Json::parse(R"({"defaults":{"n_embd":768,"n_layer":12,"attn_config":{"kv_n_heads":1,"a":2}}})"));
  const Value merged = with_class_defaults(
      to_value(Json::parse(R"({"hidden_size":1024,"n_layer":null,"attn_config":{"kv_n_heads":4}})")), defaults);
  CHECK(merged.find("n_embd") == nullptr);
  CHECK(merged.find("n_layer")->is_null());
  CHECK(merged.find("attn_config")->find("kv_n_heads")->as_int() == 4);
  CHECK(merged.find("attn_config")->find("a")->as_int() == 2);
}

TEST_CASE("generic models have llama's shape") {
  GenericModel given;
  given.hidden = 4096;
  given.layers = 32;
  CHECK(generic(given).parameters() == 6738415616);  // llama-7b's proportions
  given.params = 7000000000;
  const ModelSpec fitted = generic(given);
  CHECK(std::abs(fitted.parameters() - 7000000000) < 3 * 4096 * 32);
  CHECK(fitted.model_type == "generic");
  CHECK(fitted.warnings.size() == 1);

  GenericModel only_layers;
  only_layers.params = 13000000000;
  only_layers.layers = 40;
  CHECK(generic(only_layers).hidden == 5120);
  GenericModel only_hidden;
  only_hidden.params = 13000000000;
  only_hidden.hidden = 5120;
  CHECK(generic(only_hidden).layers == 40);
}

TEST_CASE("a generic model of only a total has no dimensions") {
  GenericModel given;
  given.params = 7000000000;
  const ModelSpec spec = generic(given);
  CHECK(spec.parameters() == 7000000000);
  CHECK_FALSE(spec.dimensions_known);
  CHECK(spec.sections.empty());
}

TEST_CASE("generic models are checked") {
  Problems problems;
  GenericModel given;
  given.hidden = 4096;
  (void)generic_model(given, problems);
  REQUIRE(problems.list().size() == 1);
  CHECK(problems.list()[0].key == "layers");

  Problems more;
  given.layers = 0;
  given.heads = -1;
  (void)generic_model(given, more);
  CHECK(more.list().size() == 2);

  Problems odd;
  given.layers = 2;
  given.heads = 3;
  (void)generic_model(given, odd);
  REQUIRE(odd.list().size() == 1);
  CHECK(odd.list()[0].key == "heads");
}

}  // namespace membill::census_test
