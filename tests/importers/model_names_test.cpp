// Names of copies of a model lead to the preset of their shapes.
#include "io/model_names.h"

#include "io/importers/importer.h"
#include "io/model_source.h"
#include "support/catch.h"

namespace membill::importers_test {
namespace {

std::string preset_of(const std::string& name) {
  static const std::vector<io::ModelPreset> kPresets = io::all_models({});
  const std::optional<io::NamedPreset> found = io::related_preset(name, kPresets);
  return found ? found->preset.short_name : "";
}

}  // namespace

TEST_CASE("fine-tunes are known by name, whoever owns the copy") {
  CHECK(preset_of("lmsys/vicuna-13b-v1.5") == "llama-2-13b");
  CHECK(preset_of("someone/vicuna-13b-v1.5-16k") == "llama-2-13b");
  CHECK(preset_of("lmsys/vicuna-13b-v1.3") == "llama-13b");
  CHECK(preset_of("DeepSeek-R1-Distill-Qwen-7B") == "qwen2-7b");
  CHECK(preset_of("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B") == "deepseek-r1-distill-qwen-1.5b");
  CHECK(preset_of("meta-llama/Llama-2-7b-hf") == "llama-2-7b");
  CHECK(preset_of("modelscope/llama2-7b-chat/") == "llama-2-7b");
  CHECK(preset_of("nobody/no-such-model-7b").empty());
  CHECK(preset_of("").empty());
  CHECK(preset_of("/").empty());
  CHECK(preset_of("/root/.cache/huggingface/hub/models--meta-llama--Meta-Llama-3-8B-Instruct/snapshots/f25f") ==
        "llama-3-8b");
  CHECK(preset_of("models--gpt2") == "gpt2");
  CHECK(preset_of("models--").empty());
}

TEST_CASE("a copy finds its own preset before one that begins alike") {
  CHECK(preset_of("unsloth/Phi-3.5-mini-instruct-bnb-4bit") == "phi-3.5-mini-instruct");
  CHECK(preset_of("unsloth/Phi-3-mini-128k-instruct-bnb-4bit") == "phi-3-mini-128k-instruct");
  CHECK(preset_of("unsloth/DeepSeek-R1-Distill-Qwen-7B-unsloth-bnb-4bit") == "qwen2-7b");
  CHECK(preset_of("unsloth/zephyr-7b-gemma-sft-bnb-4bit") == "gemma-7b");
}

TEST_CASE("the ending of a name says how a copy is stored") {
  CHECK(io::storage_named("unsloth/Meta-Llama-3.1-8B-unsloth-bnb-4bit").format == WeightFormat::nf4);
  CHECK(io::storage_named("TechxGenus/Meta-Llama-3-8B-Instruct-GPTQ/").format == WeightFormat::gptq_int4);
  CHECK(io::storage_named("Qwen/Qwen3-14B-FP8").format == WeightFormat::fp8);
  CHECK(io::storage_named("RedHatAI/Qwen3-14B-quantized.w4a16").format == WeightFormat::packed_int4);
  CHECK(io::storage_named("meta-llama/Llama-2-7b-hf").method.empty());
  CHECK(io::storage_named("ISTA-DASLab/Llama-2-7b-AQLM-2Bit-1x16").method == "aqlm");
  CHECK_FALSE(io::storage_named("ISTA-DASLab/Llama-2-7b-AQLM-2Bit-1x16").format);
  CHECK(io::storage_named("-awq").method == "awq");
}

TEST_CASE("a base that a fine-tuned version states is found where nothing else in the name speaks against it") {
  const std::vector<io::ModelPreset> presets = io::all_models({});
  const auto base_of = [&](const std::string& name) {
    const std::optional<io::NamedPreset> found = io::stated_base(name, presets);
    return found ? found->preset.short_name : std::string();
  };
  CHECK(base_of("cognitivecomputations/dolphin-2.9-llama3-8b") == "llama-3-8b");
  CHECK(base_of("Skywork/Skywork-Reward-V2-Qwen3-8B") == "qwen3-8b");
  CHECK(base_of("x/dolphin-2.5-mixtral-8x7b") == "mixtral-8x7b-v0.1");
  CHECK(base_of("neuralmagic/Sparse-Llama-3.1-8B-2of4") == "llama-3.1-8b");
  CHECK(base_of("hfl/llama-2-chinese-7b").empty());
  CHECK(base_of("x/Llama-3.1-8B-4x-moe").empty());
  CHECK(base_of("x/llama3-8b-qwen2-7b").empty());
  CHECK(base_of("x/pruned-llama-2-7b").empty());
  CHECK(base_of("llama").empty());
  CHECK(base_of("").empty());
}

TEST_CASE("ModelScope's folders, and sizes whose folder says the family") {
  CHECK(preset_of("/hub/AI-ModelScope/Qwen2___5-7B-Instruct") == "qwen2.5-7b");
  CHECK(preset_of("/data/models/LLaMA/7B-hf/") == "llama-7b");
  CHECK(preset_of("Qwen3-30B-A3B-mcore") == "qwen3-30b-a3b");
}

TEST_CASE("no name belongs to two presets") {
  const std::vector<io::ModelPreset> presets = io::all_models({});
  for (const io::ModelPreset& preset : presets) {
    for (const std::string& alias : preset.aliases) {
      INFO(preset.short_name + ": " + alias);
      const std::optional<io::NamedPreset> found = io::preset_named(alias, presets);
      REQUIRE(found);
      CHECK(found->preset.short_name == preset.short_name);
    }
  }
}

TEST_CASE("a job that trains a fine-tune says whose shapes are taken") {
  Problems problems;
  const io::JobFile job = io::import_text(
      "base_model: alignment-handbook/zephyr-7b-sft-full\nadapter: lora\nlora_r: 8\nmicro_batch_size: 1\nsequence_len: "
      "512\n",
      "axolotl.yml", "", {}, problems);
  CHECK(problems.empty());
  CHECK(job.model == "alignment-handbook/zephyr-7b-sft-full");
  bool said = false;
  for (const std::string& text : job.assumptions)
    said = said || text.find("has the shapes of the preset mistral-7b-v0.1") != std::string::npos;
  CHECK(said);
}

}  // namespace membill::importers_test
