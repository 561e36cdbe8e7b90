// Names of fine-tuned models lead to the preset of their base.
#include "io/importers/fine_tunes.h"

#include "io/importers/importer.h"
#include "support/catch.h"

namespace membill::importers_test {

TEST_CASE("fine-tunes are known by name, whoever owns the copy") {
  CHECK(io::base_of_fine_tune("lmsys/vicuna-13b-v1.5") == "llama-2-13b");
  CHECK(io::base_of_fine_tune("lmsys/vicuna-13b-v1.3") == "llama-13b");
  CHECK(io::base_of_fine_tune("DeepSeek-R1-Distill-Qwen-7B") == "qwen2.5-7b");
  CHECK(io::base_of_fine_tune("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B")
            .empty());  // its head is not tied, its base's is
  CHECK(io::base_of_fine_tune("meta-llama/Llama-2-7b-hf").empty());
  CHECK(io::base_of_fine_tune("").empty());
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
