// The words of the plan's enumerations. The first word of a value is membill's own spelling; later ones are accepted too.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "membill/training_plan.h"

namespace membill {

template <typename E>
struct Word {
  E value;
  std::string_view name;
};
template <typename E>
Word(E, const char*) -> Word<E>;

inline constexpr std::array kStageWords{Word{Stage::pretrain, "pretrain"},
                                        Word{Stage::sft, "sft"},
                                        Word{Stage::classification, "classification"},
                                        Word{Stage::reward, "reward"},
                                        Word{Stage::dpo, "dpo"},
                                        Word{Stage::orpo, "orpo"},
                                        Word{Stage::simpo, "simpo"},
                                        Word{Stage::kto, "kto"},
                                        Word{Stage::grpo, "grpo"},
                                        Word{Stage::ppo, "ppo"},
                                        Word{Stage::distill, "distill"},
                                        Word{Stage::inference, "inference"},
                                        Word{Stage::pretrain, "pretraining"},
                                        Word{Stage::distill, "distillation"}};
inline constexpr std::array kMethodWords{Word{Method::full, "full"},
                                         Word{Method::freeze, "freeze"},
                                         Word{Method::lora, "lora"},
                                         Word{Method::dora, "dora"},
                                         Word{Method::adalora, "adalora"},
                                         Word{Method::vera, "vera"},
                                         Word{Method::ia3, "ia3"},
                                         Word{Method::loha, "loha"},
                                         Word{Method::lokr, "lokr"},
                                         Word{Method::oft, "oft"},
                                         Word{Method::prompt, "prompt"},
                                         Word{Method::prefix, "prefix"},
                                         Word{Method::ptuning, "ptuning"},
                                         Word{Method::prompt, "prompt-tuning"},
                                         Word{Method::prefix, "prefix-tuning"},
                                         Word{Method::ptuning, "p-tuning"}};
inline constexpr std::array kOptimizerImplWords{
    Word{OptimizerImpl::loop, "loop"}, Word{OptimizerImpl::foreach, "foreach"}, Word{OptimizerImpl::fused, "fused"}};
inline constexpr std::array kCheckpointingWords{Word{Checkpointing::none, "none"}, Word{Checkpointing::full, "full"},
                                                Word{Checkpointing::selective, "selective"}};
inline constexpr std::array kAttentionWords{Word{AttentionKernel::sdpa, "sdpa"},
                                            Word{AttentionKernel::flash, "flash"},
                                            Word{AttentionKernel::mem_efficient, "mem-efficient"},
                                            Word{AttentionKernel::sdpa_math, "sdpa-math"},
                                            Word{AttentionKernel::eager, "eager"},
                                            Word{AttentionKernel::fused_softmax, "fused-softmax"},
                                            Word{AttentionKernel::flash, "flash-attention-2"},
                                            Word{AttentionKernel::flash, "flash-attention-3"}};
inline constexpr std::array kLossWords{Word{LossKind::native, "native"}, Word{LossKind::upcast, "upcast"},
                                       Word{LossKind::chunked, "chunked"}, Word{LossKind::fused, "fused"}};
inline constexpr std::array kLoopWords{Word{Loop::trainer, "trainer"}, Word{Loop::plain, "plain"}};
inline constexpr std::array kImplementationWords{Word{Implementation::hf, "hf"},
                                                 Word{Implementation::liger, "liger"},
                                                 Word{Implementation::unsloth, "unsloth"},
                                                 Word{Implementation::megatron, "megatron"},
                                                 Word{Implementation::torchtune, "torchtune"},
                                                 Word{Implementation::torchtitan, "torchtitan"},
                                                 Word{Implementation::litgpt, "litgpt"}};
inline constexpr std::array kEngineWords{Word{Engine::torch, "torch"},         Word{Engine::ddp, "ddp"},
                                         Word{Engine::deepspeed, "deepspeed"}, Word{Engine::fsdp, "fsdp"},
                                         Word{Engine::fsdp2, "fsdp2"},         Word{Engine::megatron, "megatron"}};
inline constexpr std::array kAdapterDTypeWords{
    Word{AdapterDType::automatic, "auto"}, Word{AdapterDType::fp32, "fp32"},    Word{AdapterDType::bf16, "bf16"},
    Word{AdapterDType::fp16, "fp16"},      Word{AdapterDType::fp32, "float32"}, Word{AdapterDType::bf16, "bfloat16"},
    Word{AdapterDType::fp16, "float16"}};
inline constexpr std::array kFloatWords{
    Word{DType::fp32, "fp32"},    Word{DType::bf16, "bf16"},     Word{DType::fp16, "fp16"},   Word{DType::fp8, "fp8"},
    Word{DType::fp32, "float32"}, Word{DType::bf16, "bfloat16"}, Word{DType::fp16, "float16"}};
inline constexpr std::array kLengthWords{Word{false, "fixed"}, Word{true, "varied"}};

// membill's own spelling of `value`.
template <typename E, std::size_t N>
[[nodiscard]] constexpr std::string_view word_of(const std::array<Word<E>, N>& words, E value) {
  for (const Word<E>& word : words) {
    if (word.value == value) return word.name;
  }
  return {};
}

template <typename E, std::size_t N>
[[nodiscard]] std::vector<std::string_view> names_of(const std::array<Word<E>, N>& words) {
  std::vector<std::string_view> names;
  names.reserve(N);
  for (const Word<E>& word : words) names.push_back(word.name);
  return names;
}

// membill's own spellings with blanks between, for help.
template <typename E, std::size_t N>
[[nodiscard]] std::string help_of(const std::array<Word<E>, N>& words) {
  std::string help;
  for (const Word<E>& word : words) {
    if (word_of(words, word.value) != word.name) continue;
    if (!help.empty()) help += ' ';
    help += word.name;
  }
  return help;
}

}  // namespace membill
