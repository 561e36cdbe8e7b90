// The list of model families: one line each.
#include "catalog/families/list.h"

namespace membill {

namespace {

using namespace census;

constexpr Family kFamilies[] = {
    {"llama", "LlamaForCausalLM", true, describe_llama},
    {"mistral", "MistralForCausalLM", true, describe_mistral},
    {"qwen2", "Qwen2ForCausalLM", true, describe_qwen2},
    {"qwen3", "Qwen3ForCausalLM", true, describe_qwen3},
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

const Family* find_family(std::string_view model_type) {
  for (const Family& family : kFamilies) {
    if (family.model_type == model_type) return &family;
  }
  return nullptr;
}

}  // namespace membill
