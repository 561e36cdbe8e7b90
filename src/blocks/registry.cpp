// Which program runs which model type: one line each.
#include <array>

#include "blocks/architecture.h"
#include "blocks/gpt2.h"
#include "blocks/gpt_neox.h"
#include "blocks/llama.h"

namespace membill {
namespace {

const LlamaArchitecture kLlama;
const Gpt2Architecture kGpt2;
const GptNeoxArchitecture kGptNeox;

struct Row {
  std::string_view model_type;
  const Architecture* program;
};

const std::array kPrograms = {
    Row{"generic", &kLlama},  // --params models have llama's shape
    Row{"gpt2", &kGpt2},
    Row{"gpt_neox", &kGptNeox},
    Row{"llama", &kLlama},
    Row{"mistral", &kLlama},
    Row{"qwen2", &kLlama},
    Row{"qwen3", &kLlama},
};

}  // namespace

const Architecture* find_architecture(std::string_view model_type, Implementation implementation) {
  if (implementation != Implementation::hf) return nullptr;
  for (const Row& row : kPrograms)
    if (row.model_type == model_type) return row.program;
  return nullptr;
}

std::span<const std::string_view> modelled_types() {
  static const auto names = [] {
    std::array<std::string_view, kPrograms.size()> list;
    for (std::size_t i = 0; i < kPrograms.size(); ++i) list.at(i) = kPrograms.at(i).model_type;
    return list;
  }();
  return names;
}

}  // namespace membill
