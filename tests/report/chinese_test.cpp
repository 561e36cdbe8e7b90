// explain, its quiz and plan say no sentence in English when asked for Chinese: every word in Latin letters is a name.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "membill/catalog.h"
#include "support/catch.h"
#include "support/command.h"
#include "support/places.h"

namespace membill::report {
namespace {

// Names that no catalogue holds: programs, authors, methods, and words that Chinese texts of the field keep.
constexpr std::array kNames{"membill",
                            "Adam",
                            "Adafactor",
                            "ZeRO",
                            "FSDP",
                            "DDP",
                            "DeepSpeed",
                            "Megatron",
                            "LM",
                            "Liger",
                            "LoRA",
                            "QLoRA",
                            "CUDA",
                            "NCCL",
                            "cuBLAS",
                            "MLP",
                            "logits",
                            "token",
                            "autocast",
                            "rank",
                            "all",
                            "gather",
                            "reduce",
                            "scatter",
                            "GiB",
                            "MiB",
                            "KiB",
                            "chosen",
                            "rejected",
                            "autograd",
                            "torch",
                            "optim",
                            "peft",
                            "trl",
                            "census",
                            "master",
                            "transformers",
                            "bitsandbytes",
                            "deepspeed",
                            "megatron",
                            "core",
                            "Rajbhandari",
                            "DistributedDataParallel",
                            "AccumulateGrad",
                            "MatMul",
                            "environment",
                            "ForCausalLMLoss",
                            "DynamicLayer",
                            "unshard",
                            "dr",
                            "dv",
                            "fe",
                            "fs"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Words of letters alone. What has digits, dots, slashes or underscores in it is the name of a file, a key or a value.
std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  std::string word;
  bool plain = true;
  const auto finish = [&] {
    if (plain && word.size() > 1) words.insert(word);
    word.clear();
    plain = true;
  };
  for (const char c : text + " ") {
    const bool joins = (c >= '0' && c <= '9') || std::string_view("_./=#+*-").find(c) != std::string_view::npos;
    if (!is_letter(c) && !joins) {
      finish();
      continue;
    }
    plain = plain && is_letter(c);
    word += c;
  }
  return words;
}

std::set<std::string> known_names() {
  std::set<std::string> names(kNames.begin(), kNames.end());
  const auto add = [&](const std::string& text) { names.merge(words_of(text)); };
  for (const PlanFieldRow& row : plan_fields()) {
    add(row.key.substr(row.key.rfind('.') + 1));
    add(row.values);
  }
  for (const OptimizerRow& row : optimizers()) add(std::string(row.name));
  for (const Family& family : families()) names.emplace(family.model_type);
  return names;
}

std::string english_words(const std::string& text, const std::set<std::string>& names) {
  std::string found;
  for (const std::string& word : words_of(text))
    if (names.count(word) == 0) found += word + " ";
  return found;
}

}  // namespace

TEST_CASE("Chinese output has no English words but names") {
  const std::set<std::string> names = known_names();
  for (const char* model :
       {"llama-3.2-1b", "gpt2", "qwen3-30b-a3b", "deepseek-v2-lite", "t5-small", "bert-base-uncased"})
    for (const char* plan :
         {"", "--method lora --rank 16 --checkpointing full", "--method qlora", "--stage dpo --method lora --beta 0.1",
          "--engine deepspeed --zero 3 --offload optimizer", "--engine deepspeed --zero 2 --gpus 8 --accumulate 4",
          "--engine fsdp2 --fsdp full_shard --gpus 4", "--engine ddp --gpus 2 --loop plain --keep-outputs",
          "--optimizer muon --weights fp32", "--optimizer adamw_8bit --implementation liger --evaluation-batch 4",
          "--stage grpo --generations 4", "--stage inference", "--optimizer galore_adamw --attention eager"}) {
      for (const std::string_view command : {"explain --depth full", "explain --quiz", "plan"}) {
        // A plan of a large model tries hundreds of lists, and says what a small one's does.
        const bool small = std::string_view(model) == "gpt2" || std::string_view(model) == "t5-small";
        if (command == "plan" && !small) continue;
        const std::string line =
            "membill " + std::string(command) + " " + model + " " + plan + " --gpu '1 GiB' --lang zh 2>/dev/null";
        const test::CommandResult result = test::run_command(line, test::in_source());
        INFO(line);
        CHECK(result.status != 3);
        const std::string words = english_words(result.out, names);
        CHECK(words == "");
      }
    }
}

}  // namespace membill::report
