#include "io/importers/torchtune_builders.h"

#include <string_view>

namespace membill::io {
namespace {

// Builders whose names do not spell the preset's.
struct Builder {
  std::string_view name, preset;
};
constexpr Builder kBuilders[] = {{"code_llama2_7b", "codellama-7b"},
                                 {"code_llama2_13b", "codellama-13b"},
                                 {"code_llama2_70b", "codellama-70b"},
                                 {"mistral_7b", "mistral-7b-v0.1"},
                                 {"mistral_reward_7b", "mistral-7b-v0.1"},
                                 {"phi3_mini", "phi-3-mini-4k-instruct"},
                                 {"phi4_14b", "phi-4"},
                                 {"gemma_2b", "gemma-2b"},
                                 {"gemma_7b", "gemma-7b"},
                                 {"llama3_3_70b", "llama-3.3-70b-instruct"},
                                 {"llama3_2_vision_11b", "llama-3.2-11b-vision"},
                                 {"llama3_2_vision_90b", "llama-3.2-90b-vision"},
                                 {"llama2_reward_7b", "llama-2-7b"},
                                 {"qwen3_moe_30b_a3b", "qwen3-30b-a3b"}};

// Beginnings of names, the longer ones first; what follows is the size ("1_5b").
constexpr Builder kHeads[] = {{"llama3_1_", "llama-3.1"}, {"llama3_2_", "llama-3.2"}, {"llama3_3_", "llama-3.3"},
                              {"llama3_", "llama-3"},     {"llama2_", "llama-2"},     {"qwen2_5_", "qwen2.5"},
                              {"qwen2_", "qwen2"},        {"qwen3_", "qwen3"},        {"gemma2_", "gemma-2"},
                              {"gemma_", "gemma"}};

// Builders that exist as _base and _instruct only.
constexpr std::string_view kTwofold[] = {"qwen2_5_1_5b", "qwen2_5_7b", "qwen2_5_14b", "qwen2_5_32b", "qwen2_5_72b",
                                         "qwen3_0_6b",   "qwen3_1_7b", "qwen3_4b",    "qwen3_8b",    "qwen3_14b"};

std::string with_ending(const std::string& builder) {
  for (const std::string_view twofold : kTwofold) {
    if (builder == twofold) return builder + "_base";
  }
  return builder;
}

std::string module_of(std::string_view builder) {
  for (const Builder& head : kHeads) {
    if (builder.starts_with(head.name)) return std::string(head.name.substr(0, head.name.size() - 1));
  }
  return std::string(builder.substr(0, builder.find('_')));
}

}  // namespace

std::string torchtune_preset(std::string builder) {
  for (const char* ending : {"_base", "_instruct"}) {
    if (builder.ends_with(ending)) builder.resize(builder.size() - std::string_view(ending).size());
  }
  for (const Builder& known : kBuilders) {
    if (builder == known.name) return std::string(known.preset);
  }
  for (const Builder& head : kHeads) {
    if (!builder.starts_with(head.name)) continue;
    std::string size = builder.substr(head.name.size());
    for (char& c : size) c = c == '_' ? '.' : c;
    return std::string(head.preset) + "-" + size;
  }
  return builder;
}

std::string torchtune_builder(const std::string& preset) {
  for (const Builder& known : kBuilders) {
    if (preset == known.preset) return module_of(known.name) + "." + std::string(known.name);
  }
  for (const Builder& head : kHeads) {
    const std::string start = std::string(head.preset) + "-";
    if (preset.size() <= start.size() || !preset.starts_with(start)) continue;
    std::string size = preset.substr(start.size());
    for (char& c : size) c = c == '.' || c == '-' ? '_' : c;
    return module_of(head.name) + "." + with_ending(std::string(head.name) + size);
  }
  return {};
}

}  // namespace membill::io
