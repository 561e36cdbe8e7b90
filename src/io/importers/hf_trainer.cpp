// Scripts built on Hugging Face's Trainer: TrainingArguments, and the names that public scripts give to model, length and adapters.
#include <algorithm>

#include "base/text.h"
#include "io/importers/deepspeed.h"
#include "io/importers/formats.h"
#include "io/importers/launch_programs.h"
#include "io/importers/public_scripts.h"
#include "io/importers/training_arguments.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"model_name_or_path", "", "model"},
    {"model_name", "", "", "model_name_or_path"},
    {"model_id", "", "", "model_name_or_path"},
    {"model", "", "", "model_name_or_path"},
    {"model_path", "", "", "model_name_or_path"},
    {"base_model_id", "", "", "model_name_or_path"},
    {"base_model", "", "", "model_name_or_path"},
    {"pretrained_model_name_or_path", "", "", "model_name_or_path"},
    {"max_seq_length", "", "tokens of a sequence"},
    {"model_max_length", "", "", "max_seq_length"},
    {"max_length", "", "", "max_seq_length"},
    {"max_len", "", "", "max_seq_length"},
    {"cutoff_len", "", "", "max_seq_length"},
    {"block_size", "", "", "max_seq_length"},
    {"context_length", "", "", "max_seq_length"},
    {"max_seq_len", "", "", "max_seq_length"},
    {"seq_length", "", "", "max_seq_length"},
    {"max_source_length", "", "tokens of the prompt"},
    {"source_max_len", "", "", "max_source_length"},
    {"max_target_length", "", "tokens of the answer"},
    {"target_max_len", "", "", "max_target_length"},
    {"batch_size", "", "", "per_device_train_batch_size"},
    {"micro_batch_size", "", "", "per_device_train_batch_size"},
    {"gradient_accumulation", "", "", "gradient_accumulation_steps"},
    {"use_gradient_checkpointing", "", "", "gradient_checkpointing"},
    {"torch_dtype", "", "dtype in which the weights are loaded"},
    {"dtype", "", "", "torch_dtype"},
    {"model_dtype", "", "", "torch_dtype"},
    {"train_mode", "", "full, lora or qlora"},
    {"train_type", "", "", "train_mode"},
    {"task_type", "", "sft, dpo, reward or pretrain"},
    {"use_lora", "false", "adapters train"},
    {"lora_enable", "", "", "use_lora"},
    {"use_peft", "", "", "use_lora"},
    {"use_peft_lora", "", "", "use_lora"},
    {"q_lora", "false", "adapters over a 4-bit base"},
    {"use_qlora", "", "", "q_lora"},
    {"full_finetune", "", "all weights train"},
    {"bits", "", "bits of the base's weights"},
    {"quantization_bit", "", "", "bits"},
    {"pre_seq_len", "", "tokens of P-tuning v2"},
    {"use_unsloth", "false", "Unsloth's kernels"},
    {"bnb_4bit_quant_storage_dtype", "uint8", "dtype that holds the packed weights"},
    {"bnb_4bit_quant_storage", "", "", "bnb_4bit_quant_storage_dtype"},
    {"quant_type", "nf4", "4-bit format"},
    {"bnb_4bit_quant_type", "", "", "quant_type"},
    {"double_quant", "true", "the scales are quantised too"},
    {"use_bnb_nested_quant", "", "", "double_quant"},
    {"use_nested_quant", "", "", "double_quant"},
    {"load_in_4bit", "", "4-bit base"},
    {"use_4bit", "", "", "load_in_4bit"},
    {"use_4bit_quantization", "", "", "load_in_4bit"},
    {"load_in_8bit", "", "8-bit base"},
    {"use_8bit_quantization", "", "", "load_in_8bit"},
    {"lora_r", "", "rank of the adapters"},
    {"lora_rank", "", "", "lora_r"},
    {"lora_alpha", "", "scale of the adapters"},
    {"lora_dropout", "0.05", "dropout before the adapters"},
    {"lora_target_modules", "", "modules that get an adapter"},
    {"lora_target", "", "", "lora_target_modules"},
    {"target_modules", "", "", "lora_target_modules"},
    {"modules_to_save", "", "modules that train whole"},
    {"lora_modules_to_save", "", "", "modules_to_save"},
    {"use_dora", "false", "DoRA"},
    {"attn_implementation", "", "attention kernel"},
    {"use_flash_attn", "false", "flash attention"},
    {"use_flash_attn_2", "", "", "use_flash_attn"},
    {"use_flash_attention", "", "", "use_flash_attn"},
    {"flash_attn", "", "", "use_flash_attn"},
    {"packing", "false", "several samples share a sequence"},
    {"beta", "", "strength of the reference"},
    {"max_prompt_length", "", "tokens of the prompt"},
    {"use_ddp", "", "data parallel"},
    {"deepspeed_config", "", "", "deepspeed"},
    {"zero_stage", "0", "ZeRO stage, where --deepspeed is a switch"},
    {"offload", "false", "weights and states live on the host, where --deepspeed is a switch"},
    {"use_reentrant", "", "reentrant checkpointing"},
    {"lora_modules", "", "", "lora_target_modules"},
    {"trainable", "", "", "lora_target_modules"},
    {"load_in_kbits", "", "", "bits"},
    {"freeze_vision_tower", "", "whether the vision tower trains"},
    {"disable_flash_attn2", "", "no flash attention"},
    {"lora_dim", "0", "rank of DeepSpeed-Chat's own LoRA; 0: none"},
    {"lora_module_name", "", "modules that get it"},
    {"only_optimize_lora", "", "the weights under it are frozen"},
    {"vision_tower", "", "the vision tower"},
    {"tune_mm_mlp_adapter", "", "the projector alone trains"},
    {"freeze_backbone", "", "the language model does not train"},
    {"mm_tunable_parts", "", "which parts train"},
    {"tune_llm", "", "whether the language model trains"},
    {"tune_vision", "", "whether the vision tower trains"},
    {"unfreeze_mm_vision_tower", "", "whether the vision tower trains"},
    {"freeze_mm_mlp_adapter", "", "whether the projector trains"},
    {"freeze_llm", "", "whether the language model trains"},
    {"world_size", "", "cards in all"},
};

constexpr std::string_view kHarmless =
    "train_file validation_file data_path data_dir dataset dataset_name dataset_config_name template template_name "
    "tokenize_num_workers "
    "preprocessing_num_workers overwrite_cache streaming cache_dir config_name tokenizer_name use_fast_tokenizer "
    "model_revision "
    "use_auth_token trust_remote_code low_cpu_mem_usage lazy_preprocess epochs num_epochs lr weight_decay log_* "
    "save_model "
    "image_folder version mm_projector_type mm_projector_lr mm_vision_* mm_use_im_* mm_patch_merge_type mm_hidden_size "
    "mm_spatial_pool_* pretrain_mm_mlp_adapter image_aspect_ratio image_grid_pinpoints image_crop_resolution "
    "image_split_resolution video_folder frames_upbound force_sample add_time_instruction "
    "group_by_modality_length "
    "train_on_source mmlu_* do_mmlu_eval dataset_format max_new_tokens source_* eval_dataset_size train_file_path "
    "conversation_* "
    "eval_data_path validation_split_percentage train_dir pretrain_train_split add_eos_token wandb_* "
    "prompt_template_name train_on_inputs "
    "use_wandb val_set_size chat_template num_workers project_name entity reentrant_checkpointing add_special_tokens "
    "append_concat_token chat_template_format dataset_* splits bnb_4bit_compute_dtype "
    "max_slice_nums llm_type uid ip_address rdzv_* help verbose bench_steps bind_cores_to_rank leaf_module "
    "log_interval train_dataset_name data "
    "num_padding_at_beginning data_split data_output_path disable_dropout eval_interval eval_iters print_loss "
    "meta_path conv_style force_image_size max_dynamic_patch min_dynamic_patch down_sample_ratio drop_path_rate "
    "freeze_mlp vision_select_layer dynamic_image_size use_thumbnail ps_version use_custom_trainer pad2square "
    "apply_chat_template model_prompt data_mixture use_deepspeed cache_dir_data train_dataset_path system_prompt "
    "prompt_type max_train_* max_eval_* ckpt_dir output_gguf_dir base_path ckpt_name task_name "
    "freeze_merger tune_merger lora_namespan_exclude num_lora_modules vision_lora merger_lr vision_lr image_min_pixels "
    "image_max_pixels image_resized_* max_pixels min_pixels size_valid_set subset split input_column_name "
    "output_column_name num_warmup_steps dataset_text_field num_proc do_sample";

constexpr std::string_view kSource = "public scripts on transformers' Trainer";

bool says(const std::optional<std::string>& text, std::string_view word) { return text && to_lower(*text) == word; }

// DeepSpeed-Chat's own layers (dschat/utils/module/lora.py), by a part of the modules' names.
void read_chat_lora(KeyReader& reader, LoraArguments& lora, Draft& draft) {
  lora.targets = {"all-linear"};
  reader.use("lora_module_name");
  draft.assume("DeepSpeed-Chat's own LoRA is billed as PEFT's on every linear of the layers");
  if (!reader.flag("only_optimize_lora"))
    draft.warnings.push_back(
        "without only_optimize_lora the weights under the adapters train too, which is not billed");
}

void read_method(KeyReader& reader, Draft& draft) {
  if (reader.count("pre_seq_len", 1))
    reader.problem("pre_seq_len", "ChatGLM's own P-tuning v2 is not billed", "PEFT's prefix tuning: --method prefix");
  const std::optional<std::string> mode = reader.text("train_mode");
  const std::optional<std::int64_t> bits = reader.count("bits");
  const bool four = reader.flag("load_in_4bit") || reader.flag("q_lora") || says(mode, "qlora") || bits == 4;
  const bool eight = reader.flag("load_in_8bit") || bits == 8;
  const bool named = reader.is_given("lora_r") || reader.is_given("lora_target_modules");
  const bool full = says(mode, "full") || reader.flag("full_finetune");
  const std::int64_t own = reader.map().find("lora_dim") != nullptr ? reader.count("lora_dim").value_or(0) : 0;
  const bool adapters =
      !full && (own > 0 || reader.flag("use_lora") || says(mode, "lora") || four || eight || (named && !mode));
  if (!adapters) return draft.set("method", Value::of("full"));
  LoraArguments lora;
  lora.rank = own > 0 ? std::optional(own) : reader.count("lora_r", 1);
  lora.alpha = reader.count("lora_alpha");
  lora.dropout = reader.real("lora_dropout");
  lora.targets = read_targets(reader, "lora_target_modules");
  if (lora.targets.empty() && lacks_default_targets(draft)) {
    lora.targets = {"all-linear"};
    draft.assume("PEFT has no default targets for this model: the script is taken to adapt every linear");
  }
  if (own > 0) read_chat_lora(reader, lora, draft);
  lora.modules_to_save = reader.texts("modules_to_save");
  lora.dora = reader.flag("use_dora");
  set_lora(lora, draft);
  if (four) set_bits(4, reader.text("quant_type").value_or("nf4"), reader.flag("double_quant"), true, draft);
  if (eight && !four) set_bits(8, "", false, true, draft);
}

void read_load_dtype(KeyReader& reader, Draft& draft) {
  const std::optional<std::string> dtype = reader.text("torch_dtype");
  const bool plain = dtype == "from_pretrained";  // a program's call, without the argument
  if (dtype && !plain) {
    draft.load_dtype = dtype_word(*dtype);
    if (draft.load_dtype.empty()) {
      reader.problem("torch_dtype", "has the unknown value " + quoted(*dtype), "float32, bfloat16, float16 or auto");
      draft.load_dtype = "fp32";
    }
    return;
  }
  const std::string release = plan_text(draft, "software.transformers");
  if (release.starts_with("5.") || (plain && !release.starts_with("4."))) return;  // the checkpoint's own
  if (plain) {
    draft.load_dtype = "fp32";
    return;
  }
  const bool adapters = trains_adapters(draft);
  draft.load_dtype = !adapters ? "fp32" : draft.fp16 ? "fp16" : "bf16";
  if (draft.quantized || plan_text(draft, "engine") == "deepspeed" || draft.own_precision) return;
  draft.assume(adapters ? "the script is taken to load the frozen base in " + draft.load_dtype
                        : "the script is taken to load the weights in fp32, as from_pretrained of Transformers 4 does; "
                          "--weights bf16 "
                          "--precision amp-bf16 otherwise");
}

// What a script's name says that it trains: "dpo_training.py", "reward_modeling.py".
std::string task_of_name(const Launch& launch) {
  if (launch.program.empty()) return "sft";
  const std::vector<std::string> words = split(underscored(to_lower(launch.program.front())), '_');
  for (const char* task : {"grpo", "ppo", "dpo", "orpo", "kto", "reward"})
    for (const std::string& word : words)
      if (word == task || word == std::string(task) + ".py") return task;
  return "sft";
}

void read_stage(const Launch& launch, KeyReader& reader, Draft& draft) {
  const std::string named = task_of_name(launch);
  const std::string task = to_lower(reader.text("task_type").value_or(named));
  if (named == "ppo" || named == "grpo")
    return draft.problems.add({draft.file, "",
                               launch.program.front() + " trains on what it generates, which is not billed",
                               "--as trl, where it takes TRL's arguments"});
  const bool pretrains = task == "pretrain" || task == "pt",
             other = task == "dpo" || task == "reward" || task == "orpo" || task == "kto" || task == "classification";
  draft.set("stage", Value::of(pretrains ? "pretrain" : other ? task : "sft"));
  if (task != "dpo") return;
  draft.set("prompt", reader.count("max_prompt_length", 1));
  if (const auto beta = reader.real("beta")) draft.set("beta", Value::of(*beta));
}

void read_lengths(KeyReader& reader, Draft& draft) {
  const std::optional<std::int64_t> whole = reader.count("max_seq_length", 1);
  const std::optional<std::int64_t> source = reader.count("max_source_length", 1),
                                    target = reader.count("max_target_length", 1);
  if (whole) {
    draft.set("seq", whole);
  } else if ((source || target) && source.value_or(0) < (1LL << 40) && target.value_or(0) < (1LL << 40)) {
    draft.set("seq", std::optional(source.value_or(0) + target.value_or(0)));
  } else {
    draft.assume(draft.file + " does not say the length of a sequence: 2048 taken, --seq says it");
  }
  // run_clm.py joins all texts and cuts them into blocks.
  const bool packing = reader.flag("packing") || reader.map().find("block_size") != nullptr;
  draft.set("packing", Value::of(packing));
  if (!packing && plan_text(draft, "stage") != "pretrain") set_padded(draft);
}

// Scripts like DeepSpeed-Chat's take --deepspeed as a switch and make the configuration themselves (dschat/utils/ds_utils.py).
void read_deepspeed_switch(KeyReader& reader, Draft& draft) {
  const bool offload = reader.flag("offload");
  const bool bf16 = draft.bf16 || dtype_word(reader.text("torch_dtype").value_or("fp16")) == "bf16";
  const Value device = Value::make_map({{"device", Value::of(offload ? "cpu" : "none")}});
  const Value zero = Value::make_map({{"stage", Value::of(reader.count("zero_stage").value_or(0))},
                                      {"overlap_comm", Value::of(true)},
                                      {"offload_param", device},
                                      {"offload_optimizer", device},
                                      {"stage3_param_persistence_threshold", Value::of(10'000)},
                                      {"stage3_max_live_parameters", Value::of(30'000'000)},
                                      {"stage3_prefetch_bucket_size", Value::of(30'000'000)}});
  const Value on = Value::make_map({{"enabled", Value::of(true)}});
  const std::vector<KeyRecord> kept = draft.records;
  read_deepspeed_part(Value::make_map({{bf16 ? "bf16" : "fp16", on}, {"zero_optimization", zero}}), reader.file(), {},
                      draft);
  draft.records = kept;  // the script's own flags are recorded by this table
  if (offload) set_optimizer("cpu-adam", draft);
  draft.assume("--deepspeed is a switch: the script is taken to configure DeepSpeed as DeepSpeed-Chat does");
}

bool is_switch(const Value* deepspeed) { return deepspeed != nullptr && deepspeed->is_bool() && deepspeed->as_bool(); }

int claim(const JobSource& source) {
  const int own = count_keys(source.keys,
                             "per_device_train_batch_size per_device_eval_batch_size gradient_accumulation_steps "
                             "num_train_epochs learning_rate lr_scheduler_type warmup_ratio save_strategy "
                             "logging_steps output_dir save_steps bf16 fp16 gradient_checkpointing weight_decay");
  if (!source.launch.program.empty() && is_transformers_example(source.launch.program.front())) return 70;
  if (own >= 3) return 35;
  const bool model =
      count_keys(source.keys, "model_name_or_path model_name model base_model base_model_id model_path model_id") > 0;
  return source.arguments && model && (own > 0 || source.keys.find("batch_size") != nullptr) ? 20 : 0;
}

// LLaVA and what descends from it (llava/train/train.py): a vision tower before the language model, and switches of what trains.
constexpr LeftOut kLeftOut[] = {
    {"freeze_vision_tower", "false trains the vision tower, which is billed as frozen", true},
    {"tune_vision", "trains the vision tower, which is billed as frozen"},
    {"unfreeze_mm_vision_tower", "trains the vision tower, which is billed as frozen"}};

bool trains_language_model(KeyReader& reader) {
  const std::string parts = to_lower(reader.text("mm_tunable_parts").value_or(""));
  if (!parts.empty()) return parts.find("language_model") != std::string::npos;
  if (reader.flag("tune_mm_mlp_adapter") || reader.flag("freeze_backbone") || reader.flag("freeze_llm")) return false;
  return reader.maybe_flag("tune_llm").value_or(true);
}

// Where the language model is frozen, the gradient still runs through all of it, to what trains before it: an adapter of rank 1 in the
// first layer keeps the same of the layers.
void read_multimodal(KeyReader& reader, Draft& draft) {
  warn_of_left_out(kLeftOut, reader, draft);
  if (reader.is_given("vision_tower"))
    draft.warnings.push_back("vision_tower: the tower, its projector and their features are not billed");
  reader.use("freeze_mm_mlp_adapter");
  if (trains_language_model(reader) || plan_text(draft, "method") != "full") return;
  LoraArguments lora;
  lora.rank = lora.alpha = 1;
  lora.targets = {"all-linear"};
  lora.layers = Value::make_list({Value::of(0)});
  set_lora(lora, draft);
  draft.warnings.push_back(
      "the language model is frozen and what is before it trains: it is billed with an adapter of rank 1 in its first "
      "layer, without the weights, gradients and states of the projector");
}

// Transformers' own examples of sequence classification (examples/pytorch/text-classification).
bool classifies(const Launch& launch) {
  constexpr std::string_view kScripts[] = {"run_glue.py", "run_glue_no_trainer.py", "run_classification.py",
                                           "run_xnli.py"};
  const auto& program = launch.program;
  return !program.empty() &&
         std::find(std::begin(kScripts), std::end(kScripts), base_name(program.front())) != std::end(kScripts);
}

void read(const JobSource& source, Draft& draft) {
  const Value keys = with_script_defaults(source, draft);
  KeyReader reader(keys, source.file, {hf_trainer_table(), training_arguments_table()}, draft.problems);
  draft.model = reader.text("model_name_or_path");
  draft.model_key = "model_name_or_path";
  if (const auto cards = reader.count("world_size", -1); cards.value_or(0) > 0 && !draft.processes)
    draft.processes = cards;
  read_stage(source.launch, reader, draft);
  if (classifies(source.launch)) draft.set("stage", Value::of("classification"));
  read_training_arguments(reader, reader.flag("use_reentrant"), draft);
  read_method(reader, draft);
  read_multimodal(reader, draft);
  read_lengths(reader, draft);
  const Value* flash = reader.given("use_flash_attn");
  const bool is_flash = (flash != nullptr && (value_text(*flash) == "fa2" || reader.flag("use_flash_attn"))) ||
                        reader.maybe_flag("disable_flash_attn2") == false;
  set_attention(reader.text("attn_implementation").value_or(is_flash ? "flash_attention_2" : "sdpa"),
                "attn_implementation", draft);
  if (is_switch(reader.given("deepspeed"))) {
    read_deepspeed_switch(reader, draft);
  } else {
    read_sharding_arguments(reader, source.launch, draft);
  }
  if (reader.flag("use_unsloth")) draft.set("implementation", Value::of("unsloth"));
  set_quant_storage(reader.text("bnb_4bit_quant_storage_dtype").value_or("uint8"), draft);
  read_load_dtype(reader, draft);
  draft.add_records(reader);
}

}  // namespace

KeyTable hf_trainer_table() { return {kRows, kHarmless, kSource}; }

Importer hf_trainer_importer() {
  return {"hf-trainer", "arguments of scripts on Hugging Face's Trainer: JSON, YAML, flags", kSource, claim, read};
}

}  // namespace membill::io
