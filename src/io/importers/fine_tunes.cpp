#include "io/importers/fine_tunes.h"

#include <array>

#include "base/text.h"

namespace membill::io {
namespace {

// `name` in lower case; "name*" stands for all that begin so. Only models that add no rows to the vocabulary.
struct FineTune {
  std::string_view name, preset;
};
constexpr std::array kFineTunes{FineTune{"vicuna-7b-v1.5*", "llama-2-7b"},
                                FineTune{"vicuna-13b-v1.5*", "llama-2-13b"},
                                FineTune{"vicuna-7b-v1.1*", "llama-7b"},
                                FineTune{"vicuna-7b-v1.3*", "llama-7b"},
                                FineTune{"vicuna-13b-v1.1*", "llama-13b"},
                                FineTune{"vicuna-13b-v1.3*", "llama-13b"},
                                FineTune{"vicuna-33b-v1.3*", "llama-30b"},
                                FineTune{"zephyr-7b-alpha*", "mistral-7b-v0.1"},
                                FineTune{"zephyr-7b-beta*", "mistral-7b-v0.1"},
                                FineTune{"zephyr-7b-sft*", "mistral-7b-v0.1"},
                                FineTune{"zephyr-7b-dpo*", "mistral-7b-v0.1"},
                                FineTune{"zephyr-7b-gemma*", "gemma-7b"},
                                FineTune{"deepseek-r1-distill-qwen-7b*", "qwen2.5-7b"},
                                FineTune{"deepseek-r1-distill-qwen-14b*", "qwen2.5-14b"},
                                FineTune{"deepseek-r1-distill-qwen-32b*", "qwen2.5-32b"},
                                FineTune{"deepseek-r1-distill-llama-8b*", "llama-3.1-8b"},
                                FineTune{"deepseek-r1-distill-llama-70b*", "llama-3.1-70b"},
                                FineTune{"deepcoder-14b*", "qwen2.5-14b"},
                                FineTune{"deepseek-v3-0324*", "deepseek-v3"},
                                FineTune{"tinyllama-1.1b*", "tinyllama-1.1b-chat-v1.0"},
                                FineTune{"tinyllama_v1.1*", "tinyllama-1.1b-chat-v1.0"},
                                FineTune{"phi-3.5-mini-instruct*", "phi-3-mini-4k-instruct"},
                                FineTune{"phi-3-mini-128k-instruct*", "phi-3-mini-4k-instruct"},
                                FineTune{"devstral-small-2505*", "mistral-small-24b-base-2501"},
                                FineTune{"devstral-small-2507*", "mistral-small-24b-base-2501"},
                                FineTune{"cogito-v1-preview-llama-8b*", "llama-3.1-8b"},
                                FineTune{"sus-chat-34b*", "yi-34b"},
                                FineTune{"llama-2-7b-chat-ms", "llama-2-7b"},
                                FineTune{"llama-2-13b-chat-ms", "llama-2-13b"},
                                FineTune{"llama-2-70b-chat-ms", "llama-2-70b"},
                                FineTune{"llama2-7b-chat", "llama-2-7b"},
                                FineTune{"llama2-13b-chat", "llama-2-13b"},
                                FineTune{"llama2-70b-chat", "llama-2-70b"}};

}  // namespace

std::string base_of_fine_tune(std::string_view name) {
  const std::string lower = to_lower(name.substr(name.rfind('/') + 1));
  for (const FineTune& known : kFineTunes) {
    const bool open = known.name.ends_with('*');
    const std::string_view stem = known.name.substr(0, known.name.size() - (open ? 1 : 0));
    if (open ? lower.starts_with(stem) : lower == stem) return std::string(known.preset);
  }
  return {};
}

}  // namespace membill::io
