#include "io/model_source.h"

#include <string>

#include "errors.h"
#include "io/embedded.h"
#include "io/json_reader.h"
#include "membill/catalog.h"
#include "support/catch.h"
#include "temporary_folder.h"

namespace membill::io_test {
namespace {

constexpr const char* kTinyLlama =
    R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
  "num_attention_heads": 4, "vocab_size": 1000})";

std::string model_error(const std::string& text, const io::DataDirs& dirs = {}) {
  return error_of([&] { return io::load_model(text, dirs); });
}

io::LoadedModel load(const std::string& config) {
  return io::load_config(io::parse_json(config, "config.json"), "config.json", "x");
}
std::string config_error(const std::string& config) {
  return error_of([&] { return load(config); });
}

}  // namespace

TEST_CASE("every preset of a model is described") {
  const std::vector<io::ModelPreset> presets = io::all_models({});
  REQUIRE(presets.size() == io::embedded_files("models").size());
  REQUIRE(presets.size() >= 230);
  for (const io::ModelPreset& preset : presets) {
    INFO(preset.short_name);
    const ModelSpec spec = io::describe_model(io::load_model(preset.short_name, {}));
    CHECK(spec.name == preset.short_name);
    CHECK(spec.source.starts_with("preset " + preset.short_name + ": "));
    CHECK(spec.parameters() > 0);
    CHECK(io::load_model(preset.hub_id, {}).name == preset.short_name);
    for (const std::string& alias : preset.aliases) {
      INFO(alias);
      const io::LoadedModel model = io::load_model(alias, {});
      CHECK(model.name == preset.short_name);
      CHECK(model.alias == alias);
      CHECK(io::describe_model(model).parameters() == spec.parameters());
    }
  }
}

TEST_CASE("an alias has the shapes of its preset, and its own changes") {
  for (const char* name : {"Qwen/Qwen2.5-Math-7B-Instruct", "qwen2.5-math-7b-instruct"}) {
    const io::LoadedModel model = io::load_model(name, {});
    CHECK(model.name == "qwen2.5-7b");
    CHECK(model.alias == "Qwen/Qwen2.5-Math-7B-Instruct");
    CHECK(model.config.find("max_position_embeddings")->as_int() == 4096);
  }
  CHECK(io::load_model("Qwen/Qwen2.5-7B", {}).alias.empty());
  CHECK(io::load_model("Qwen/Qwen2.5-7B", {}).config.find("max_position_embeddings")->as_int() == 131072);
}

TEST_CASE("a preset of a model with a tower counts and describes the tower") {
  const ModelSpec spec = io::describe_model(io::load_model("Qwen/Qwen2.5-VL-7B-Instruct", {}));
  CHECK(spec.parameters() == 7615616512 + 676550144);
  CHECK(spec.not_counted.empty());
  CHECK(spec.warnings.empty());
  REQUIRE(spec.vision);
  CHECK(spec.vision->tower == "model.visual.");
  CHECK(spec.vision->window == 112);
  CHECK(spec.vision->whole_image_layers == std::vector<std::int64_t>{7, 15, 23, 31});
  // keras-hub's count of gemma3_4b, and 64 rows more of the embedding.
  CHECK(io::describe_model(io::load_model("google/gemma-3-4b-it", {})).parameters() == 4299915632 + 64 * 2560);
}

TEST_CASE("presets have the parameters that were published") {
  for (const io::EmbeddedFile& file : io::embedded_files("models")) {
    const Value preset = io::parse_json(file.text, std::string(file.name));
    const Value* published = preset.find("published");
    if (published == nullptr || published->find("parameters") == nullptr || published->find("difference") != nullptr)
      continue;
    INFO(file.name);
    CHECK(io::describe_model(io::load_model(file.name, {})).parameters() > 0);
  }
}

TEST_CASE("presets are found by short name, hub id and tail") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>({
      {"llama-2-7b", "llama-2-7b"},
      {"LLAMA-2-7B", "llama-2-7b"},
      {"meta-llama/Llama-2-7b-hf", "llama-2-7b"},
      {"Llama-2-7b-hf", "llama-2-7b"},
      {"llama-2-7b-hf", "llama-2-7b"},
      {"2-7b-hf", "llama-2-7b"},
      {"Qwen2.5-7B", "qwen2.5-7b"},
      {"gpt2", "gpt2"},
      {"bloom", "bloom"},
      {"scout-17b-16e", "llama-4-scout-17b-16e"},
  }));
  CHECK(io::load_model(text, {}).name == expected);
}

TEST_CASE("a copy's name leads to its model's preset, which a warning says") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>({
      {"meta-llama/Llama-2-7b", "llama-2-7b"},
      {"llama3-8b", "llama-3-8b"},
      {"mistral-7b", "mistral-7b-v0.1"},
      {"gemma3-12b", "gemma-3-12b-pt"},
      {"unsloth/Qwen3-8B-unsloth-bnb-4bit", "qwen3-8b"},
  }));
  const io::LoadedModel model = io::load_model(text, {});
  CHECK(model.related);
  CHECK(model.name == expected);
  REQUIRE(model.warnings.size() == 1);
  CHECK(model.warnings.front() == "'" + text + "' has the shapes of the preset " + expected);
  CHECK(model.stored.method == (text.ends_with("-4bit") ? "bitsandbytes" : ""));
  CHECK_FALSE(io::load_model(expected, {}).related);
}

TEST_CASE("names that no preset or several presets have") {
  CHECK(model_error("llama-2-7c") == "MODEL: 'llama-2-7c' is no preset and no file (llama-2-7b)");
  CHECK(model_error("9.5-7b") == "MODEL: '9.5-7b' is no preset and no file");
  CHECK(model_error("no/such/config.json") == "MODEL: 'no/such/config.json' is no file and no preset");
  CHECK(model_error("meta-llama/Llama-2-9b") ==
        "MODEL: 'meta-llama/Llama-2-9b' is no file and no preset (meta-llama/Llama-3.2-1B)");
  CHECK(model_error("phi-3-mini") ==
        "MODEL: 'phi-3-mini' is no preset and no file (phi-3-mini-4k-instruct, phi-3-mini-128k-instruct)");
  CHECK(model_error("") == "MODEL: is empty");
  CHECK(model_error("xl") == "MODEL: 'xl' may be more than one preset (gpt2-xl, t5-v1-1-xl, t5-v1-1-xxl)");
  CHECK(model_error("7b").starts_with("MODEL: '7b' may be more than one preset ("));
  CHECK(model_error("7b").ends_with(", ...)"));
  CHECK(model_error(std::string(100000, 'x')).starts_with("MODEL: 'xxxx"));
}

TEST_CASE("models are read from a file, its folder, or a preset of the user") {
  const TemporaryFolder folder;
  const std::string path = folder.write("tiny/config.json", kTinyLlama);
  for (const std::string& argument : {path, folder.path("tiny"), folder.path("tiny") + "/"}) {
    const io::LoadedModel model = io::load_model(argument, {});
    CHECK(model.name == argument);
    CHECK(model.model_type == "llama");
    CHECK(model.file == "config.json");
    CHECK(model.config.find("tie_word_embeddings") != nullptr);
  }
  folder.write("data/models/mine.json",
               std::string(R"({"name": "me/Mine-1B", "source": "us", "config": )") + kTinyLlama + "}");
  const io::DataDirs dirs{{folder.path("data")}};
  CHECK(io::load_model("mine", dirs).name == "mine");
  CHECK(io::load_model("me/mine-1b", dirs).source == "preset mine: us");
  CHECK(io::all_models(dirs).size() == io::all_models({}).size() + 1);
}

TEST_CASE("folders and presets that hold no model") {
  const TemporaryFolder folder;
  folder.write("empty/x", "");
  folder.write("adapter/adapter_config.json", "{}");
  folder.write("original/params.json", "{}");
  CHECK(model_error(folder.path("empty")) == "empty: the folder holds no config.json");
  CHECK(model_error(folder.path("adapter")) ==
        "adapter: the folder holds no config.json (it holds an adapter: name the base model instead)");
  CHECK(
      model_error(folder.path("original")) ==
      "original: the folder holds no config.json (params.json is not read: convert the model to Hugging Face's form)");
  folder.write("data/models/bad.json", R"({"name": "x", "confg": {}, "source": 3})");
  const Lines expected{"bad.json: source: needs text, not whole number", "bad.json: config: is missing",
                       "bad.json: confg: is no known key (config)"};
  CHECK(errors_of([&] { return io::load_model("bad", io::DataDirs{{folder.path("data")}}); }) == expected);
}

TEST_CASE("configs that are no model") {
  const auto [config, message] = GENERATE(table<std::string, std::string>({
      {"[]", "a config is a map, not list"},
      {"{}",
       "model_type: is missing: this is no config.json of a model (or describe it: --params 7e9 --hidden 4096 --layers "
       "32)"},
      {R"({"model_type": 7})", "model_type: needs the name of a model type"},
      {R"({"model_type": ""})", "model_type: needs the name of a model type"},
      {R"({"model_type": "lama"})",
       "model_type: 'lama' is no model type that membill knows (nearest known: llama; or describe it: --params 7e9 "
       "--hidden 4096 --layers 32)"},
      {R"({"model_type": "mamba2"})",
       "model_type: 'mamba2' is no model type that membill knows (or describe it: --params 7e9 --hidden 4096 --layers "
       "32)"},
      {R"({"model_type": "wrap", "text_config": {"model_type": "mamba2"}})",
       "text_config.model_type: 'mamba2' is no model type that membill knows (or describe it: --params 7e9 --hidden "
       "4096 --layers 32)"},
  }));
  CHECK(config_error(config) == "config.json: " + message);
}

TEST_CASE("all wrong sizes of a config come at once and name the file") {
  const std::string config =
      R"({"model_type": "llama", "hidden_size": "big", "num_hidden_layers": 0, "vocab_size": -5})";
  const Lines lines = errors_of([&] { return io::describe_model(load(config)); });
  REQUIRE(lines.size() >= 3);
  for (const std::string& line : lines) CHECK(line.starts_with("config.json: "));
}

TEST_CASE("a config without a model type is known by its class") {
  const io::LoadedModel model = load(R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 64})");
  CHECK(model.model_type == "llama");
  CHECK(model.warnings == Lines{"config.json: model_type is missing; taken from architectures: llama"});
}

TEST_CASE("what a file says of its storage") {
  CHECK(load(R"({"model_type": "llama", "torch_dtype": "bfloat16"})").stored_dtype == "bfloat16");
  CHECK(load(R"({"model_type": "llama", "dtype": "float16", "torch_dtype": "float32"})").stored_dtype == "float16");
  CHECK(load(R"({"model_type": "llama", "torch_dtype": "torch.float32"})").stored_dtype == "float32");
  CHECK(load(R"({"model_type": "llama", "quantization_config": {"quant_method": "gptq"}})").stored.method == "gptq");
  CHECK(load(R"({"model_type": "llama", "quantization_config": {"load_in_4bit": true}})").stored.method ==
        "bitsandbytes");
  CHECK(load(R"({"model_type": "llama"})").stored.method.empty());
}

TEST_CASE("a wrapper is its text part, tied as the wrapper says") {
  const std::string text = R"("text_config": {"hidden_size": 64, "num_hidden_layers": 2, "tie_word_embeddings": true})";
  const io::LoadedModel gemma =
      load(R"({"model_type": "gemma3", "dtype": "bfloat16", "vision_config": {"hidden_size": 9}, )" + text + "}");
  CHECK(gemma.model_type == "gemma3_text");
  CHECK(gemma.not_counted == Lines{"vision_config"});
  CHECK(gemma.stored_dtype == "bfloat16");
  CHECK(gemma.config.find("hidden_size")->as_int() == 64);
  CHECK(gemma.config.find("intermediate_size")->as_int() == 9216);
  CHECK(gemma.config.find("tie_word_embeddings")->as_bool());
  const io::LoadedModel untied =
      load(R"({"model_type": "gemma3", "tie_word_embeddings": false, "audio_config": null, )" + text + "}");
  CHECK_FALSE(untied.config.find("tie_word_embeddings")->as_bool());
  CHECK(untied.not_counted == Lines{"vision_config"});  // the class builds one of its own
  const io::LoadedModel by_class = load(R"({"model_type": "qwen2_vl", )" + text + "}");
  CHECK_FALSE(by_class.config.find("tie_word_embeddings")->as_bool());
}

TEST_CASE("a wrong size in a wrapper's text part names the part") {
  const auto lines = errors_of(
      [] { return io::describe_model(load(R"({"model_type": "gemma3", "text_config": {"hidden_size": 0}})")); });
  REQUIRE_FALSE(lines.empty());
  CHECK(lines.front().starts_with("config.json: text_config.hidden_size: "));
}

TEST_CASE("a wrapper of an unknown kind is its text part when that is known") {
  const io::LoadedModel model = load(
      R"({"model_type": "internvl_chat", "vision_config": {}, "llm_config": {"model_type": "qwen2", "hidden_size": 64}})");
  CHECK(model.model_type == "qwen2");
  CHECK(model.not_counted == Lines{"vision_config"});
}

TEST_CASE("an older wrapper keeps the sizes of its text part at the top") {
  const io::LoadedModel model = load(R"({"model_type": "qwen2_vl", "hidden_size": 64, "vision_config": {"depth": 3}})");
  CHECK(model.model_type == "qwen2_vl_text");
  CHECK(model.config.find("hidden_size")->as_int() == 64);
}

}  // namespace membill::io_test
