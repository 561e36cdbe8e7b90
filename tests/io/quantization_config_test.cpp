// What quantization_config says, by the spellings of the tools that write it.
#include "io/quantization_config.h"

#include "io/json_reader.h"
#include "membill/catalog.h"
#include "support/catch.h"

namespace membill {
namespace {

StoredWeights stored(const std::string& settings) {
  return io::read_quantization(
      io::parse_json(R"({"model_type": "llama", "quantization_config": )" + settings + "}", "config.json"));
}

std::string format_of(const StoredWeights& weights) {
  return weights.format ? std::string(weight_format(*weights.format).name) : "none";
}

using Names = std::vector<std::string>;

struct Row {
  std::string settings, method, format;
  std::optional<std::int64_t> group_size;
  std::optional<Names> skip;
};

TEST_CASE("storage by quant_method") {
  const Row row = GENERATE(values<Row>({
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": true, "sym": true})",
       "gptq",
       "gptq-int4",
       128,
       {}},
      {R"({"quant_method": "gptq", "bits": 8, "group_size": -1})", "gptq", "gptq-int8", -1, {}},
      {R"({"quant_method": "gptq", "bits": 5})", "gptq", "none", {}, {}},
      {R"({"quant_method": "gptq", "bits": 3, "lm_head": true})", "gptq", "gptq-int3", {}, Names{}},
      {R"({"quant_method": "gptq", "bits": 4, "dynamic": {"-:.*mlp.gate": {}, "+:x": {}}})",
       "gptq",
       "gptq-int4",
       {},
       Names{"re:.*mlp.gate", "lm_head"}},
      {R"({"quant_method": "awq", "bits": 4, "group_size": 64, "modules_to_not_convert": ["visual"]})", "awq",
       "awq-int4", 64, Names{"visual", "lm_head"}},
      {R"({"quant_method": "awq", "w_bit": 4, "q_group_size": 128, "modules_to_not_convert": null})",
       "awq",
       "awq-int4",
       128,
       {}},
      {R"({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 3, "group_size": 64}}, "skip_modules": ["lm_head"]})",
       "hqq", "hqq-int3", 64, Names{"lm_head"}},
      {R"({"quant_method": "hqq", "quant_config": {"self_attn.q_proj": {}}})", "hqq", "none", {}, {}},
      {R"({"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [128, 128]})",
       "fp8",
       "fp8",
       128,
       {}},
      {R"({"quant_method": "fp8", "weight_block_size": null})", "fp8", "fp8", -1, {}},
      {R"({"quant_method": "fp8", "weight_block_size": [1, 128]})", "fp8", "none", -1, {}},
      {R"({"quant_method": "fp8"})", "fp8", "fp8", {}, {}},
      {R"({"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["model.layers.0.self_attn"]})",
       "fbgemm_fp8",
       "fp8-rows",
       {},
       Names{"model.layers.0.self_attn", "lm_head"}},
      {R"({"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]})",
       "mxfp4",
       "mxfp4",
       {},
       {}},
      {R"({"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4"})",
       "bitsandbytes",
       "nf4",
       {},
       {}},
      {R"({"load_in_4bit": true})", "bitsandbytes", "fp4", {}, {}},
      {R"({"load_in_8bit": true, "llm_int8_skip_modules": ["score"]})", "bitsandbytes", "int8", {}, Names{"score"}},
      {R"({"quant_method": "compressed-tensors", "ignore": ["lm_head"], "config_groups": {"g": {"weights":
           {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": true}}}})",
       "compressed-tensors", "packed-int4", 32, Names{"lm_head"}},
      {R"({"quant_method": "compressed-tensors", "ignore": [], "config_groups": {"g": {"weights":
           {"num_bits": 8, "type": "float", "strategy": "channel"}}}})",
       "compressed-tensors",
       "fp8-rows",
       {},
       Names{}},
      {R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights":
           {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}}}})",
       "compressed-tensors",
       "fp8",
       128,
       {}},
      {R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights":
           {"num_bits": 8, "type": "int", "strategy": "channel"}}}})",
       "compressed-tensors",
       "int8-rows",
       -1,
       {}},
      {R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": ["lm_head"]})",
       "modelopt",
       "nvfp4",
       {},
       Names{"lm_head"}},
      {R"({"quant_method": "aqlm", "nbits_per_codebook": 16})", "aqlm", "none", {}, {}},
      {R"({"bits": 4})", "unknown", "none", {}, {}},
  }));
  INFO(row.settings);
  const StoredWeights weights = stored(row.settings);
  CHECK(weights.method == row.method);
  CHECK(format_of(weights) == row.format);
  CHECK(weights.layout.group_size == row.group_size);
  CHECK(weights.layout.skip == row.skip);
}

// compressed-tensors quantization/quant_args.py: symmetric is true where the file does not say it.
TEST_CASE("schemes have zero points only where they are not symmetric") {
  const auto scheme = [](const std::string& more) {
    return stored(R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4,
      "type": "int", "strategy": "group", "group_size": 128)" +
                  more + "}}}}");
  };
  CHECK(scheme("").layout.zero_points == false);
  CHECK(scheme(R"(, "symmetric": true)").layout.zero_points == false);
  CHECK(scheme(R"(, "symmetric": false)").layout.zero_points == true);
}

TEST_CASE("odd storage settings are no crash") {
  for (const char* settings :
       {"[]", "null", "4", R"({"quant_method": 4})", R"({"quant_method": "gptq", "bits": "four", "dynamic": 3})",
        R"({"quant_method": "compressed-tensors", "config_groups": {"a": 1}})",
        R"({"quant_method": "compressed-tensors", "config_groups": {"a": {}, "b": {}}})"}) {
    INFO(settings);
    CHECK_NOTHROW(stored(settings));
  }
}

}  // namespace
}  // namespace membill
