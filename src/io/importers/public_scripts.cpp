#include "io/importers/public_scripts.h"

#include <algorithm>
#include <array>

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

void remove(Value& keys, std::string_view key) {
  std::erase_if(keys.entries(), [&](const Value::Entry& entry) { return entry.first == key; });
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
  remove(keys, "batch_size");
  complete(keys, "gradient_accumulation_steps", "gradient_accumulation_steps",
           Value::of(std::max<std::int64_t>(1, steps / std::max<std::int64_t>(1, world_size(draft).value_or(1)))));
  complete(keys, "cutoff_len", "cutoff_len", Value::of(256));
  complete(keys, "lora_r", "lora_r", Value::of(8));
  complete(keys, "lora_target_modules", "lora_target_modules", Value::of("[q_proj,v_proj]"));
  complete(keys, "load_in_8bit", "load_in_8bit load_in_4bit", Value::of(true));
  complete(keys, "fp16", "fp16 bf16", Value::of(true));
}

// haotian-liu/LLaVA llava/train/train.py, and what descends from it.
bool is_llava(const JobSource& source) { return begins(source, "train") && has(source, "lora_enable vision_tower"); }

void complete_llava(Value& keys, Draft& draft) {
  (void)draft;
  const Value* adapts = keys.find("lora_enable");
  if (adapts != nullptr && as_flag(*adapts) == true) {
    complete(keys, "lora_r", "lora_r", Value::of(64));
    complete(keys, "lora_alpha", "lora_alpha", Value::of(16));
    complete(keys, "lora_target_modules", "lora_target_modules target_modules", Value::of("all-linear"));
  }
  complete(keys, "model_max_length", "model_max_length", Value::of(512));
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

// transformers' examples/pytorch/language-modeling/run_clm.py: texts are joined and cut into blocks.
bool is_run_clm(const JobSource& source) { return begins(source, "run_clm"); }

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
    remove(keys, "freeze_llm");
  }
  if (number(keys, "use_backbone_lora") > 0)
    draft.warnings.push_back("use_backbone_lora gives the vision tower adapters, which are not billed");
  for (const char* key : {"use_llm_lora", "use_backbone_lora", "freeze_backbone"}) remove(keys, key);
  const Value* checkpoints = keys.find("grad_checkpoint");
  keys.set("gradient_checkpointing", checkpoints != nullptr ? *checkpoints : Value::of(true));
  remove(keys, "grad_checkpoint");
  complete(keys, "max_seq_length", "max_seq_length", Value::of(8192));
  complete(keys, "torch_dtype", "torch_dtype", Value::of("bfloat16"));
  complete(keys, "use_flash_attn", "use_flash_attn", Value::of(true));
}

struct PublicScript {
  std::string_view name;
  bool (*is)(const JobSource& source);
  void (*complete)(Value& keys, Draft& draft);
};
constexpr std::array kScripts{
    PublicScript{"alpaca-lora's finetune.py", is_alpaca_lora, complete_alpaca_lora},
    PublicScript{"LLaVA's train.py", is_llava, complete_llava},
    PublicScript{"train_mem.py, which runs flash attention", is_train_mem, complete_train_mem},
    PublicScript{"DeepSpeed-Chat's main.py", is_deepspeed_chat, complete_deepspeed_chat},
    PublicScript{"transformers' run_clm.py", is_run_clm, complete_run_clm},
    PublicScript{"InternVL's own script", is_internvl, complete_internvl}};

}  // namespace

Value with_script_defaults(const JobSource& source, Draft& draft) {
  Value keys = source.keys;
  if (keys.find("deepspeed_config") != nullptr) {  // beside it, --deepspeed is only a switch
    const Value* on = keys.find("deepspeed");
    if (on != nullptr && as_flag(*on) == true) remove(keys, "deepspeed");
  }
  for (const PublicScript& script : kScripts) {
    if (!script.is(source)) continue;
    script.complete(keys, draft);
    draft.assume("the script is taken for " + std::string(script.name) + ", with its own defaults");
  }
  return keys;
}

}  // namespace membill::io
