#include "io/importers/public_scripts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "io/importers/launch_programs.h"
#include "io/importers/parts.h"

namespace membill::io {
namespace {

std::string script_of(const JobSource& source) {
  if (source.launch.program.empty()) return {};
  const std::string name = base_name(source.launch.program.front());
  return name.substr(name.rfind('.') == std::string::npos || name.ends_with(".py") ? 0 : name.rfind('.') + 1);
}

bool begins(const JobSource& source, std::string_view start) { return script_of(source).starts_with(start); }

bool has(const JobSource& source, std::string_view words) { return count_keys(source.keys, words) > 0; }

// Sets `key` where none of `spellings` is given.
void complete(Value& keys, const std::string& key, std::string_view spellings, Value value) {
  if (count_keys(keys, spellings) == 0) keys.set(key, std::move(value));
}

std::int64_t number(const Value& keys, std::string_view key) {
  const Value* value = keys.find(key);
  return value != nullptr && value->is_int() ? value->as_int() : 0;
}

// tloen/alpaca-lora finetune.py: an 8-bit base; batch_size is the step's, micro_batch_size one card's.
bool is_alpaca_lora(const JobSource& source) {
  return begins(source, "finetune") && has(source, "base_model") && !has(source, "per_device_train_batch_size") &&
         has(source, "data_path micro_batch_size lora_r lora_target_modules");
}

void complete_alpaca_lora(Value& keys, Draft& draft) {
  constexpr std::int64_t kMicro = 4, kWhole = 128, kMost = 1 << 20;
  complete(keys, "micro_batch_size", "micro_batch_size", Value::of(kMicro));
  complete(keys, "batch_size", "batch_size", Value::of(kWhole));
  const std::int64_t micro = std::clamp<std::int64_t>(number(keys, "micro_batch_size"), 1, kMost);
  const std::int64_t steps = number(keys, "batch_size") / micro;
  erase_key(keys, "batch_size");
  complete(keys, "gradient_accumulation_steps", "gradient_accumulation_steps",
           Value::of(std::max<std::int64_t>(1, steps / std::max<std::int64_t>(1, world_size(draft).value_or(1)))));
  complete(keys, "cutoff_len", "cutoff_len", Value::of(256));
  complete(keys, "lora_r", "lora_r", Value::of(8));
  complete(keys, "lora_target_modules", "lora_target_modules", Value::of("[q_proj,v_proj]"));
  complete(keys, "load_in_8bit", "load_in_8bit load_in_4bit", Value::of(true));
  complete(keys, "fp16", "fp16 bf16", Value::of(true));
}

// haotian-liu/LLaVA llava/train/train.py, and what descends from it.
constexpr std::string_view kQwenVlKeys = "disable_flash_attn2 freeze_merger tune_merger lora_namespan_exclude";

bool is_llava(const JobSource& source) {
  return begins(source, "train") && has(source, "lora_enable vision_tower") && !has(source, kQwenVlKeys);
}

void complete_llava(Value& keys, Draft& draft) {
  (void)draft;
  const Value* adapts = keys.find("lora_enable");
  if (adapts != nullptr && as_flag(*adapts) == true) {
    complete(keys, "lora_r", "lora_r lora_rank", Value::of(64));
    complete(keys, "lora_alpha", "lora_alpha", Value::of(16));
    complete(keys, "lora_target_modules", "lora_target_modules target_modules", Value::of("all-linear"));
  }
  complete(keys, "model_max_length", "model_max_length", Value::of(512));
}

// 2U1/Qwen2-VL-Finetune (src/train/train_sft.py): adapters are on every linear of the language model, which is frozen under them.
bool is_qwen_vl(const JobSource& source) { return begins(source, "train") && has(source, kQwenVlKeys); }

void complete_qwen_vl(Value& keys, Draft& draft) {
  (void)draft;
  const Value* adapts = keys.find("lora_enable");
  complete(keys, "disable_flash_attn2", "disable_flash_attn2", Value::of(false));
  if (adapts == nullptr || as_flag(*adapts) != true) return;
  complete(keys, "lora_r", "lora_r lora_rank", Value::of(64));
  complete(keys, "lora_alpha", "lora_alpha", Value::of(16));
  complete(keys, "lora_target_modules", "lora_target_modules", Value::of("all-linear"));
}

// Scripts that put flash attention in the model's place: train_mem.py of FastChat and LLaVA.
bool is_train_mem(const JobSource& source) { return begins(source, "train_mem"); }

void complete_train_mem(Value& keys, Draft& draft) {
  (void)draft;
  complete(keys, "use_flash_attn", "use_flash_attn flash_attn attn_implementation", Value::of(true));
}

// microsoft/DeepSpeedExamples DeepSpeed-Chat, steps 1 and 2.
bool is_deepspeed_chat(const JobSource& source) {
  return begins(source, "main") && has(source, "deepspeed") && has(source, "zero_stage data_split lora_dim") &&
         !has(source, "actor_model_name_or_path");
}

void complete_deepspeed_chat(Value& keys, Draft& draft) {
  (void)draft;
  complete(keys, "per_device_train_batch_size", "per_device_train_batch_size", Value::of(16));
  complete(keys, "max_seq_len", "max_seq_len", Value::of(512));
  if (keys.find("num_padding_at_beginning") != nullptr) keys.set("task_type", Value::of("reward"));
}

// artidoro/qlora qlora.py: a 4-bit base, paged states and checkpointing unless the flags say otherwise.
bool is_qlora(const JobSource& source) { return begins(source, "qlora"); }

void complete_qlora(Value& keys, Draft& draft) {
  constexpr std::pair<const char*, std::int64_t> kCounts[] = {{"per_device_train_batch_size", 1},
                                                              {"gradient_accumulation_steps", 16},
                                                              {"bits", 4},
                                                              {"lora_r", 64},
                                                              {"lora_alpha", 16},
                                                              {"lora_dropout", 0},
                                                              {"source_max_len", 1024},
                                                              {"target_max_len", 256}};
  for (const auto& [key, count] : kCounts) complete(keys, key, key, Value::of(count));
  complete(keys, "gradient_checkpointing", "gradient_checkpointing", Value::of(true));
  complete(keys, "optim", "optim", Value::of("paged_adamw_32bit"));
  complete(keys, "lora_target_modules", "lora_modules lora_target_modules", Value::of("all-linear"));
  const Value* bf16 = keys.find("bf16");
  if (bf16 != nullptr && as_flag(*bf16) == true) draft.set("adapter.dtype", Value::of("bf16"));
}

// tatsu-lab/stanford_alpaca train.py, lm-sys/FastChat fastchat/train/train.py, and what descends from them.
bool is_alpaca(const JobSource& source) {
  const std::string name = script_of(source);
  return (name == "train.py" || name == "train_mem.py" || name == "train_lora.py") && has(source, "data_path") &&
         has(source, "model_name_or_path") &&
         !has(source,
              "max_seq_length max_length max_len cutoff_len block_size context_length max_seq_len seq_length "
              "model_max_length max_source_length source_max_len");
}

void complete_alpaca(Value& keys, Draft& draft) {
  (void)draft;
  complete(keys, "model_max_length", "model_max_length", Value::of(512));
}

// transformers' examples without Trainer: torch's own AdamW, nothing clipped, the outputs live until the next forward.
bool is_without_trainer(const JobSource& source) { return script_of(source).ends_with("_no_trainer.py"); }

void complete_without_trainer(Value& keys, Draft& draft) {
  complete(keys, "optim", "optim", Value::of("adamw_torch"));
  complete(keys, "max_grad_norm", "max_grad_norm", Value::of(0));
  draft.set("loop", Value::of("plain"));
  draft.set("keep_outputs", Value::of(true));
}

// transformers' examples/pytorch/language-modeling/run_clm.py: texts are joined and cut into blocks.
bool is_run_clm(const JobSource& source) {
  return begins(source, "run_clm") && !has(source, "max_seq_length model_max_length max_length cutoff_len");
}

void complete_run_clm(Value& keys, Draft& draft) {
  constexpr std::int64_t kMost = 1024;
  const Value* name = keys.find("model_name_or_path");
  if (!draft.model && name != nullptr && name->is_string()) draft.model = name->as_string();
  const std::int64_t positions = find_model(draft).max_positions;
  complete(keys, "block_size", "block_size", Value::of(positions > 0 ? std::min(positions, kMost) : kMost));
}

// OpenGVLab/InternVL internvl/train/internvl_chat_finetune.py: freeze_backbone is the vision tower.
bool is_internvl(const JobSource& source) { return begins(source, "internvl_chat"); }

void complete_internvl(Value& keys, Draft& draft) {
  const std::int64_t rank = number(keys, "use_llm_lora");
  if (rank > 0 && rank < (1 << 20)) {
    keys.set("lora_r", Value::of(rank));
    keys.set("lora_alpha", Value::of(2 * rank));
    keys.set("lora_target_modules", Value::of("all-linear"));
    erase_key(keys, "freeze_llm");
  }
  if (number(keys, "use_backbone_lora") > 0)
    draft.warnings.push_back("use_backbone_lora gives the vision tower adapters, which are not billed");
  for (const char* key : {"use_llm_lora", "use_backbone_lora", "freeze_backbone"}) erase_key(keys, key);
  const Value* checkpoints = keys.find("grad_checkpoint");
  keys.set("gradient_checkpointing", checkpoints != nullptr ? *checkpoints : Value::of(true));
  erase_key(keys, "grad_checkpoint");
  complete(keys, "max_seq_length", "max_seq_length", Value::of(8192));
  complete(keys, "torch_dtype", "torch_dtype", Value::of("bfloat16"));
  complete(keys, "use_flash_attn", "use_flash_attn", Value::of(true));
}

// bigcode-project/starcoder finetune/finetune.py: adapters over an 8-bit base, whatever the flags say.
bool is_starcoder(const JobSource& source) {
  return begins(source, "finetune") && has(source, "size_valid_set input_column_name") && has(source, "model_path");
}

void complete_starcoder(Value& keys, Draft& draft) {
  (void)draft;
  constexpr std::pair<const char*, std::int64_t> kCounts[] = {
      {"batch_size", 1}, {"gradient_accumulation_steps", 16}, {"seq_length", 2048}, {"lora_r", 16}, {"lora_alpha", 32}};
  for (const auto& [key, count] : kCounts) complete(keys, key, key, Value::of(count));
  for (const char* key : {"load_in_8bit", "bf16", "gradient_checkpointing"}) keys.set(key, Value::of(true));
  keys.set("lora_target_modules", Value::of("c_proj,c_attn,q_attn"));
}

// bigcode-project/starcoder2 finetune.py: adapters over a 4-bit base, whatever the flags say.
bool is_starcoder2(const JobSource& source) {
  return begins(source, "finetune") && has(source, "model_id") && has(source, "micro_batch_size dataset_text_field") &&
         !has(source, "lora_r lora_rank use_lora use_peft");
}

void complete_starcoder2(Value& keys, Draft& draft) {
  (void)draft;
  constexpr std::pair<const char*, std::int64_t> kCounts[] = {
      {"micro_batch_size", 1}, {"gradient_accumulation_steps", 4}, {"max_seq_length", 1024}, {"lora_r", 8}};
  for (const auto& [key, count] : kCounts) complete(keys, key, key, Value::of(count));
  for (const char* key : {"load_in_4bit", "bf16"}) keys.set(key, Value::of(true));
  keys.set("double_quant", Value::of(false));
  complete(keys, "gradient_checkpointing", "gradient_checkpointing", Value::of(true));  // of the k-bit preparation
  complete(keys, "optim", "optim", Value::of("paged_adamw_8bit"));
  keys.set("lora_dropout", Value::of(0));
  keys.set("lora_target_modules", Value::of("q_proj,o_proj,k_proj,v_proj,gate_proj,up_proj,down_proj"));
}

struct PublicScript {
  std::string_view name;
  bool (*is)(const JobSource& source);
  void (*complete)(Value& keys, Draft& draft);
};
constexpr std::array kScripts{
    PublicScript{"alpaca-lora's finetune.py", is_alpaca_lora, complete_alpaca_lora},
    PublicScript{"LLaVA's train.py", is_llava, complete_llava},
    PublicScript{"Stanford Alpaca's train.py or what descends from it", is_alpaca, complete_alpaca},
    PublicScript{"qlora.py of the QLoRA paper", is_qlora, complete_qlora},
    PublicScript{"one of transformers' examples without Trainer", is_without_trainer, complete_without_trainer},
    PublicScript{"train_mem.py, which runs flash attention", is_train_mem, complete_train_mem},
    PublicScript{"DeepSpeed-Chat's main.py", is_deepspeed_chat, complete_deepspeed_chat},
    PublicScript{"transformers' run_clm.py", is_run_clm, complete_run_clm},
    PublicScript{"Qwen2-VL-Finetune's script", is_qwen_vl, complete_qwen_vl},
    PublicScript{"StarCoder2's finetune.py", is_starcoder2, complete_starcoder2},
    PublicScript{"StarCoder's finetune.py", is_starcoder, complete_starcoder},
    PublicScript{"InternVL's own script", is_internvl, complete_internvl}};

}  // namespace

Value with_script_defaults(const JobSource& source, Draft& draft) {
  Value keys = source.keys;
  if (keys.find("deepspeed_config") != nullptr) {  // beside it, --deepspeed is only a switch
    const Value* on = keys.find("deepspeed");
    if (on != nullptr && as_flag(*on) == true) erase_key(keys, "deepspeed");
  }
  for (const PublicScript& script : kScripts) {
    if (!script.is(source)) continue;
    script.complete(keys, draft);
    draft.assume("the script is taken for " + std::string(script.name) + ", with its own defaults");
  }
  return keys;
}

}  // namespace membill::io
