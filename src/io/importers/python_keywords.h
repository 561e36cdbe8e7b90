// Keywords of calls in training programs, and the keys that the importers have for them.
#pragma once

#include <array>
#include <string_view>
#include <utility>

namespace membill::io {

struct Keyword {
  std::string_view keyword, key;
};
// from_pretrained of Transformers and of FastLanguageModel.
inline constexpr Keyword kLoading[] = {{"dtype", "dtype"},
                                       {"torch_dtype", "dtype"},
                                       {"load_in_4bit", "load_in_4bit"},
                                       {"load_in_8bit", "load_in_8bit"},
                                       {"attn_implementation", "attn_implementation"},
                                       {"max_seq_length", "max_seq_length"},
                                       {"full_finetuning", "full_finetuning"}};
// What TRL's trainers took themselves before they had arguments of their own.
inline constexpr Keyword kTrainerArguments[] = {{"max_seq_length", "max_seq_length"},
                                                {"max_length", "max_length"},
                                                {"max_prompt_length", "max_prompt_length"},
                                                {"max_completion_length", "max_completion_length"},
                                                {"packing", "packing"},
                                                {"beta", "beta"},
                                                {"loss_type", "loss_type"},
                                                {"precompute_ref_log_probs", "precompute_ref_log_probs"}};
// get_peft_model of FastLanguageModel and its kin.
inline constexpr Keyword kUnslothAdapters[] = {{"r", "lora_r"},
                                               {"lora_alpha", "lora_alpha"},
                                               {"lora_dropout", "lora_dropout"},
                                               {"target_modules", "target_modules"},
                                               {"modules_to_save", "modules_to_save"},
                                               {"use_gradient_checkpointing", "use_gradient_checkpointing"},
                                               {"finetune_vision_layers", "finetune_vision_layers"},
                                               {"finetune_language_layers", "finetune_language_layers"},
                                               {"finetune_attention_modules", "finetune_attention_modules"},
                                               {"finetune_mlp_modules", "finetune_mlp_modules"}};
// peft's LoraConfig.
inline constexpr Keyword kAdapters[] = {{"r", "lora_r"},
                                        {"lora_alpha", "lora_alpha"},
                                        {"lora_dropout", "lora_dropout"},
                                        {"target_modules", "lora_target_modules"},
                                        {"modules_to_save", "lora_modules_to_save"},
                                        {"use_dora", "use_dora"}};
inline constexpr std::string_view kUnbilledOfAdapters[] = {"rank_pattern", "layers_to_transform", "exclude_modules",
                                                           "target_parameters"};
inline constexpr std::string_view kOtherAdapters[] = {
    "AdaLoraConfig", "VeraConfig",         "IA3Config",          "LoHaConfig",         "LoKrConfig",
    "OFTConfig",     "PrefixTuningConfig", "PromptTuningConfig", "PromptEncoderConfig"};
// transformers' BitsAndBytesConfig.
inline constexpr Keyword kBits[] = {{"load_in_8bit", "load_in_8bit"},
                                    {"load_in_4bit", "load_in_4bit"},
                                    {"bnb_4bit_quant_type", "bnb_4bit_quant_type"},
                                    {"bnb_4bit_use_double_quant", "use_bnb_nested_quant"},
                                    {"bnb_4bit_quant_storage", "bnb_4bit_quant_storage"}};

// How the names of TRL's classes begin, and the trainers.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kTrainers{{{"SFT", "sft"},
                                                                                          {"DPO", "dpo"},
                                                                                          {"ORPO", "orpo"},
                                                                                          {"CPO", "cpo"},
                                                                                          {"KTO", "kto"},
                                                                                          {"Reward", "reward"},
                                                                                          {"GRPO", "grpo"},
                                                                                          {"RLOO", "rloo"},
                                                                                          {"PPO", "ppo"},
                                                                                          {"Unsloth", "sft"}}};

}  // namespace membill::io
