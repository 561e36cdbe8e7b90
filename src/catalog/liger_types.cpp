#include "catalog/liger_types.h"

#include <algorithm>
#include <array>

namespace membill {
namespace {

// liger_kernel/transformers/monkey_patch.py MODEL_TYPE_TO_APPLY_LIGER_FN of 0.8.5.
constexpr auto kTypes = std::to_array<std::string_view>({
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_v4",
    "exaone4",
    "falcon_h1",
    "gemma",
    "gemma2",
    "gemma3",
    "gemma3_text",
    "gemma4",
    "gemma4_text",
    "generic",
    "glm4",
    "glm4v",
    "glm4v_moe",
    "gpt_oss",
    "granite",
    "hunyuan_v1_dense",
    "hunyuan_v1_moe",
    "internvl",
    "llama",
    "llama4",
    "llama4_text",
    "llava",
    "ministral",
    "mistral",
    "mixtral",
    "mllama",
    "mllama_text_model",
    "muse_glimmer",
    "nemotron",
    "olmo2",
    "olmo3",
    "paligemma",
    "phi3",
    "pixtral",
    "qwen2",
    "qwen2_5_vl",
    "qwen2_5_vl_text",
    "qwen2_vl",
    "qwen2_vl_text",
    "qwen3",
    "qwen3_5",
    "qwen3_5_moe",
    "qwen3_5_moe_text",
    "qwen3_5_text",
    "qwen3_moe",
    "qwen3_next",
    "qwen3_vl",
    "qwen3_vl_moe",
    "qwen3_vl_moe_text",
    "qwen3_vl_text",
    "smollm3",
    "smolvlm",
});

}  // namespace

bool is_patched_by_liger(std::string_view model_type) {
  return std::find(kTypes.begin(), kTypes.end(), model_type) != kTypes.end();
}

}  // namespace membill
