// PEFT's default targets of AdaLoRA and (IA)3 by model type. Source: peft 0.21.2, TRANSFORMERS_MODELS_TO_ADALORA_TARGET_MODULES_MAPPING,
// ..._IA3_TARGET_MODULES_MAPPING and ..._IA3_FEEDFORWARD_MODULES_MAPPING in src/peft/utils/constants.py.
#include <array>
#include <string_view>

#include "catalog/adapters.h"
#include "catalog/default_targets.h"
#include "membill/catalog.h"

namespace membill {

namespace {

constexpr DefaultTargets kAdaLora[] = {
    {"t5", {"q", "k", "v", "o", "wi", "wo"}},
    {"gpt2", {"c_attn"}},
    {"bloom", {"query_key_value"}},
    {"opt", {"q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"}},
    {"gptj", {"q_proj", "v_proj"}},
    {"gpt_neox", {"query_key_value"}},
    {"llama", {"q_proj", "v_proj"}},
    {"llama4", {"q_proj", "v_proj"}},
    {"bert", {"query", "value"}},
    {"roberta", {"query", "key", "value", "dense"}},
    {"gpt_bigcode", {"c_attn"}},
    {"gemma", {"q_proj", "v_proj"}},
    {"gemma2", {"q_proj", "v_proj"}},
    {"gemma3_text", {"q_proj", "v_proj"}},
    {"gemma4", {R"(.*language_model\..*\.(q_proj|v_proj))"}},
    {"qwen2", {"q_proj", "v_proj"}},
    {"qwen3", {"q_proj", "v_proj"}},
    {"nemotron_h", {"q_proj", "k_proj", "v_proj", "o_proj"}},
};

// The last module is the one of the MLP, whose input is scaled.
constexpr DefaultTargets kIa3[] = {
    {"t5", {"k", "v", "wo"}},
    {"gpt2", {"c_attn", "mlp.c_proj"}},
    {"bloom", {"query_key_value", "mlp.dense_4h_to_h"}},
    {"roberta", {"key", "value", "output.dense"}},
    {"opt", {"q_proj", "k_proj", "fc2"}},
    {"gptj", {"q_proj", "v_proj", "fc_out"}},
    {"gpt_neox", {"query_key_value", "dense_4h_to_h"}},
    {"gpt_bigcode", {"c_attn", "mlp.c_proj"}},
    {"llama", {"k_proj", "v_proj", "down_proj"}},
    {"llama4", {"q_proj", "v_proj", "down_proj"}},
    {"mistral", {"k_proj", "v_proj", "down_proj"}},
    {"mixtral", {"k_proj", "v_proj", "w2"}},
    {"bert", {"key", "value", "output.dense"}},
    {"falcon", {"query_key_value", "dense_4h_to_h"}},
    {"phi", {"q_proj", "v_proj", "fc2"}},
    {"gemma", {"q_proj", "v_proj", "down_proj"}},
    {"gemma2", {"q_proj", "v_proj", "down_proj"}},
    {"gemma3_text", {"q_proj", "v_proj", "down_proj"}},
    {"qwen2", {"q_proj", "v_proj", "down_proj"}},
    {"qwen3", {"q_proj", "v_proj", "down_proj"}},
};

constexpr std::array<std::string_view, 2> kVeraOfPhi{"q_proj", "v_proj"};

}  // namespace

std::span<const std::string_view> default_adapter_targets(std::string_view model_type, Method method) {
  if (method == Method::adalora) return find_targets(kAdaLora, model_type);
  if (method == Method::ia3) return find_targets(kIa3, model_type);
  if (method == Method::vera && model_type == "phi") return kVeraOfPhi;
  return default_lora_targets(model_type);
}

std::string_view ia3_feed_forward(std::string_view model_type) {
  const auto targets = find_targets(kIa3, model_type);
  return targets.empty() ? std::string_view() : targets.back();
}

}  // namespace membill
