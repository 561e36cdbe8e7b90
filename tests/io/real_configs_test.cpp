// Configs as public repositories hold them (tests/data/io/SOURCES.md): those of modelled types give their census, the others one clear
// problem.
#include <string>

#include "errors.h"
#include "io/model_source.h"
#include "support/catch.h"
#include "support/places.h"

namespace membill::io_test {
namespace {

std::string path_of(const std::string& name) { return test::in_source("tests/data/io/") + name; }
constexpr const char* kGeneric = "or describe it: --params 7e9 --hidden 4096 --layers 32)";

}  // namespace

TEST_CASE("public configs of modelled types") {
  struct Row {
    std::string file, model_type;
    std::int64_t parameters;
    std::string stored_dtype, quantization;
    Lines not_counted;
  };
  const auto row = GENERATE(values<Row>({
      {"llama-3-8b.json", "llama", 8030261248, "bfloat16", "", {}},
      {"deepseek-v2.json", "deepseek_v2", 235741434880, "bfloat16", "", {}},
      {"gpt-oss-toy.json", "gpt_oss", 6408384, "", "", {}},
      {"chatglm2.json", "chatglm", 6243584000, "float16", "", {}},
      {"qwen3-vl-moe.json", "qwen3_vl_moe_text", 31070754032, "bfloat16", "", {}},
      {"kimi-k2.5.json", "kimi_k2", 1026408209408, "bfloat16", "compressed-tensors", {"vision_config"}},
      {"gemma-4.json", "gemma4_text", 30697345280, "bfloat16", "modelopt", {"vision_config"}},
      {"llama-4-maverick.json", "llama4_text", 401167027200, "bfloat16", "", {}},
      {"nemotron-h.json", "nemotron_h", 56324350464, "bfloat16", "", {}},
      {"qwen-7b-fake.json", "qwen", 79104768, "bfloat16", "", {}},
  }));
  INFO(row.file);
  const ModelSpec spec = io::describe_model(io::load_model(path_of(row.file), {}));
  CHECK(spec.model_type == row.model_type);
  CHECK(spec.parameters() == row.parameters);
  CHECK(spec.stored_dtype == row.stored_dtype);
  CHECK(spec.stored.method == row.quantization);
  CHECK(spec.not_counted == row.not_counted);
}

TEST_CASE("public configs of other types") {
  const auto [file, message] = GENERATE(table<std::string, std::string>({
      {"distilgpt2.json", "model_type: is missing: this is no config.json of a model ("},
      {"openmoe.json", "model_type: is missing: this is no config.json of a model ("},
  }));
  const std::string path = path_of(file);
  CHECK(error_of([&] { return io::load_model(path, {}); }) == file + ": " + message + kGeneric);
}

}  // namespace membill::io_test
