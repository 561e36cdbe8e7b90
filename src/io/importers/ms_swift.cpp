// ms-swift's arguments, YAML and JSON (swift sft), of releases 2 to 4.
#include <algorithm>

#include "base/text.h"
#include "io/importers/formats.h"
#include "io/importers/rollout.h"
#include "io/importers/training_arguments.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"model", "", "model", {}, "arguments/base_args/model_args.py"},
    {"model_id_or_path", "", "", "model"},
    {"model_type", "", "", "model"},
    {"tuner_type", "lora", "which parameters train", {}, "arguments/base_args/base_args.py"},
    {"train_type", "", "", "tuner_type"},
    {"sft_type", "", "", "tuner_type"},
    {"torch_dtype",
     "",
     "dtype in which the weights are loaded; absent: as the checkpoint says",
     {},
     "arguments/base_args/model_args.py"},
    {"dtype", "", "", "torch_dtype"},
    {"per_device_train_batch_size", "1", "micro-batch", {}, "trainers/arguments.py"},
    {"batch_size", "", "", "per_device_train_batch_size"},
    {"per_device_eval_batch_size", "1", "batch of the evaluation", {}, "trainers/arguments.py"},
    {"eval_batch_size", "", "", "per_device_eval_batch_size"},
    {"gradient_accumulation_steps",
     "",
     "micro-batches of a step; absent: about 16 samples in all",
     {},
     "trainers/arguments.py"},
    {"task_type", "causal_lm", "class of the model", {}, "arguments/base_args/model_args.py"},
    {"num_labels", "", "labels of task_type seq_cls", {}, "arguments/base_args/model_args.py"},
    {"gradient_checkpointing", "true", "layers run their forward again in backward", {}, "trainers/arguments.py"},
    {"max_length", "", "tokens of a sequence; absent: the model's maximum", {}, "arguments/base_args/template_args.py"},
    {"packing", "false", "several samples share a sequence", {}, "arguments/base_args/base_args.py"},
    {"packing_length", "", "tokens of a packed sequence; absent: max_length", {}, "arguments/base_args/base_args.py"},
    {"bnb_4bit_quant_storage", "", "dtype that holds the 4-bit weights", {}, "arguments/base_args/quant_args.py"},
    {"padding_free", "false", "samples are joined without padding", {}, "arguments/base_args/template_args.py"},
    {"attn_impl", "", "attention kernel", {}, "arguments/base_args/model_args.py"},
    {"use_flash_attn", "", "flash attention"},
    {"sequence_parallel_size", "1", "sequence parallel (Ulysses) degree", {}, "arguments/base_args/template_args.py"},
    {"target_modules", "all-linear", "modules that get an adapter", {}, "arguments/tuner_args.py"},
    {"lora_target_modules", "", "", "target_modules"},
    {"target_parameters", "", "parameters that get an adapter", {}, "arguments/tuner_args.py"},
    {"freeze_vit", "true", "whether the vision tower trains", {}, "arguments/tuner_args.py"},
    {"freeze_aligner", "true", "whether the projector trains", {}, "arguments/tuner_args.py"},
    {"freeze_llm", "false", "whether the language model trains", {}, "arguments/tuner_args.py"},
    {"freeze_parameters_regex", "", "parameters that do not train", {}, "arguments/tuner_args.py"},
    {"trainable_parameters_regex", "", "parameters that train after all", {}, "arguments/tuner_args.py"},
    {"target_regex", "", "pattern of modules that get an adapter", {}, "arguments/tuner_args.py"},
    {"modules_to_save", "", "modules that train whole", {}, "arguments/tuner_args.py"},
    {"lora_modules_to_save", "", "", "modules_to_save"},
    {"lora_rank", "8", "rank of the adapters", {}, "arguments/tuner_args.py"},
    {"lora_alpha", "32", "scale of the adapters", {}, "arguments/tuner_args.py"},
    {"lora_dropout", "0.05", "dropout before the adapters", {}, "arguments/tuner_args.py"},
    {"lora_dropout_p", "", "", "lora_dropout"},
    {"lora_dtype", "", "dtype of the adapters; absent: PEFT's", {}, "arguments/tuner_args.py"},
    {"deepspeed_config_path", "", "", "deepspeed"},
    {"lora_target_regex", "", "", "target_regex"},
    {"train_backend", "transformers", "transformers or megatron (2.x)"},
    {"use_dora", "false", "DoRA", {}, "arguments/tuner_args.py"},
    {"quant_bits", "", "bits of the base's weights", {}, "arguments/base_args/quant_args.py"},
    {"quantization_bit", "", "", "quant_bits"},
    {"quant_method", "", "who stores them", {}, "arguments/base_args/quant_args.py"},
    {"bnb_4bit_quant_type", "nf4", "4-bit format", {}, "arguments/base_args/quant_args.py"},
    {"bnb_4bit_use_double_quant", "true", "the scales are quantised too", {}, "arguments/base_args/quant_args.py"},
    {"rlhf_type", "dpo", "which preference stage (swift rlhf)"},
    {"beta", "", "strength of the reference"},
    {"max_completion_length", "512", "tokens of the completion", {}, "arguments/rlhf_args.py"},
    {"response_length",
     "",
     "tokens of the completion (ppo), before max_completion_length",
     {},
     "arguments/rlhf_args.py"},
    {"num_mini_batches", "1", "updates of one generation (ppo)", {}, "arguments/rlhf_args.py"},
    {"local_rollout_forward_batch_size", "64", "rows that are generated at once (ppo)", {}, "arguments/rlhf_args.py"},
    {"num_generations", "8", "completions of one prompt", {}, "arguments/rlhf_args.py"},
    {"steps_per_generation", "", "micro-batches that one generation feeds", {}, "trainers/arguments.py"},
    {"generation_batch_size", "", "completions of one generation on all cards", {}, "trainers/arguments.py"},
    {"num_iterations", "1", "times that a generation is trained on", {}, "trainers/arguments.py"},
    {"use_vllm", "false", "vLLM generates", {}, "arguments/rlhf_args.py"},
    {"vllm_mode", "server", "on the same cards or elsewhere", {}, "arguments/rlhf_args.py"},
    {"vllm_gpu_memory_utilization", "0.9", "share of a card that vLLM takes", {}, "arguments/infer_args.py"},
    {"vllm_enable_sleep_mode", "false", "vLLM gives its memory back while the model trains"},
    {"eval_strategy", "", "whether the job evaluates", {}, "arguments/sft_args.py"},
    {"split_dataset_ratio",
     "0.0",
     "share of the data that the evaluation gets",
     {},
     "arguments/base_args/data_args.py"},
    {"dataset_test_ratio", "", "", "split_dataset_ratio"},
    {"val_dataset", "", "data of the evaluation", {}, "arguments/base_args/data_args.py"},
    {"use_galore", "false", "GaLore", {}, "trainers/arguments.py"},
    {"galore_rank", "128", "rank of GaLore", {}, "trainers/arguments.py"},
    {"galore_update_proj_gap", "50", "GaLore's update interval", {}, "trainers/arguments.py"},
    {"galore_quantization", "false", "Q-GaLore", {}, "trainers/arguments.py"},
    {"lisa_activated_layers", "0", "layers that LISA trains at a time", {}, "trainers/arguments.py"},
    {"optimizer", "", "optimizers of ms-swift's own", {}, "trainers/arguments.py"},
    {"vit_gradient_checkpointing", "", "checkpointing of the vision tower", {}, "trainers/arguments.py"},
    {"use_logits_to_keep", "", "only the positions with labels get logits", {}, "trainers/arguments.py"},
    {"deepspeed_autotp_size", "", "tensor parallel degree", {}, "arguments/sft_args.py"},
    {"zero_hpz_partition_size", "", "cards of ZeRO++'s second copy", {}, "arguments/sft_args.py"},
    {"freeze_parameters", "", "parameters that do not train", {}, "arguments/tuner_args.py"},
    {"freeze_parameters_ratio",
     "0.0",
     "share of the first parameters that do not train",
     {},
     "arguments/tuner_args.py"},
    {"trainable_parameters", "", "parameters that train all the same", {}, "arguments/tuner_args.py"},
};

constexpr std::string_view kHarmless =
    "tuner_backend adapters external_plugins custom_register_path model_kwargs enable_npu_model_patch load_args "
    "load_data_args "
    "packing_num_proc packing_strategy lazy_tokenize use_hf ignore_args_error use_swift_lora model_revision "
    "experts_impl "
    "new_special_tokens problem_type rope_scaling device_map* max_memory max_model_len local_repo_path "
    "init_strategy hqq_axis "
    "bnb_4bit_compute_dtype bnb_4bit_comp_dtype template template_type system "
    "truncation_strategy max_pixels "
    "agent_template norm_bbox use_chat_template padding_side loss_scale is_binary_loss_scale template_backend "
    "response_prefix "
    "enable_thinking preserve_thinking add_non_thinking_prefix disable_ignore_empty_think dataset cached_dataset "
    "cached_val_dataset dataset_* load_from_cache_file val_dataset_shuffle val_dataset_sample train_dataset_sample "
    "streaming "
    "interleave_prob stopping_strategy shuffle_buffer_size download_mode columns strict disable_auto_column_mapping "
    "model_name "
    "model_author custom_* "
    "lora_bias* lorap_lr_ratio lora_lr_ratio use_rslora lora_ga_* init_weights init_lora_weights fourier_* boft_* "
    "vera_* adapter_* "
    "adalora_* llamapro_* reft_* swanlab_* add_version add_output_dir_suffix create_checkpoint_symlink max_new_tokens "
    "temperature "
    "top_p top_k repetition_penalty router_aux_loss_coef enable_dft_loss enable_channel_loss safe_serialization "
    "max_shard_size "
    "check_model acc_strategy train_dataloader_shuffle max_epochs aligner_lr vit_lr ds3_gather_for_generation "
    "resume_only_model "
    "loss_type mrl_dims eval_metric callbacks early_stop_interval eval_use_evalscope eval_dataset* eval_limit "
    "eval_generation_config "
    "extra_eval_args galore_* lisa_step_interval use_flash_ckpt check_dataset_strategy self_cognition_sample "
    "preprocess_num_proc "
    "predict_with_generate only_save_model use_loss_scale neftune_* ddp_backend_ gpu_ids rlhf_ ref_model* rpo_alpha "
    "save_on_each_node "
    "logging_first_step lazy_* test_oom_error disable_tqdm infer_backend merge_lora sft_ data_seed acc_steps "
    "train_dataset_mix_* dataloader_* additional_trainable_parameters channels check_model_is_latest ckpt_dir "
    "device_max_memory do_sample fsdp_num gpu_memory_fraction hqq_dynamic_config_path ia3_* lora_modules "
    "loss_scale_config_path metric metric_warmup_step min_lr model_cache_dir model_layer_cls_name num_beams "
    "packing_cache "
    "pp push_hub_strategy rescale_image sequence_parallel streaming_* tools_prompt tp";

constexpr std::string_view kSource = "modelscope/ms-swift 4.6, 3.6, 2.x: swift/arguments";

void read_base(KeyReader& reader, Draft& draft) {
  const std::string dtype = to_lower(reader.text("torch_dtype").value_or("auto"));
  draft.load_dtype = dtype_word(dtype);
  if (draft.load_dtype.empty()) {
    reader.problem("torch_dtype", "has the unknown value " + quoted(dtype), "bfloat16, float16, float32 or auto");
    draft.load_dtype = "auto";
  }
  const std::optional<std::int64_t> bits = reader.count("quant_bits");
  const std::string method = to_lower(reader.text("quant_method").value_or("bnb"));
  if (bits.value_or(0) == 0 || bits.value_or(0) == 16) return;
  if (method == "bnb") {
    return set_bits(*bits, reader.text("bnb_4bit_quant_type").value_or("nf4"), reader.flag("bnb_4bit_use_double_quant"),
                    false, draft);
  }
  draft.quantized = true;
  draft.set("weights", Value::of(method + "-int" + std::to_string(*bits)));
  draft.set("kbit_prepare", Value::of(false));
}

// Autocast follows the weights' dtype: bf16 for bf16, fp16 for all others.
void read_autocast(Draft& draft) {
  if (draft.load_dtype == "auto") {
    const std::string& stored = find_model(draft).stored_dtype;
    draft.load_dtype = stored.empty() ? "bf16" : stored;
  }
  draft.bf16 = draft.load_dtype == "bf16";
  draft.fp16 = !draft.bf16;
  if (draft.fp16 && plan_text(draft, "method") == "full")
    draft.load_dtype = "fp32";  // fp16 weights that train are cast up
}

// DEFAULT of 2.x: the query, key and value weights, under the model's own names (swift/llm/utils/model.py, LoRATM).
std::vector<std::string> default_targets(Draft& draft) {
  static constexpr std::pair<std::string_view, std::string_view> kJoined[] = {{"qwen", "c_attn"},
                                                                              {"baichuan", "W_pack"},
                                                                              {"chatglm", "query_key_value"},
                                                                              {"bloom", "query_key_value"},
                                                                              {"internlm2", "wqkv"},
                                                                              {"phi3", "qkv_proj"},
                                                                              {"dbrx", "Wqkv"},
                                                                              {"gpt2", "c_attn"},
                                                                              {"falcon", "query_key_value"}};
  const std::string& type = find_model(draft).model_type;
  for (const auto& [model_type, name] : kJoined) {
    if (type == model_type) return {std::string(name)};
  }
  return {"q_proj", "k_proj", "v_proj"};
}

constexpr LeftOut kLeftOut[] = {
    {"freeze_vit", "false trains the vision tower, which is billed as frozen", true},
    {"freeze_aligner", "false trains the projector, which is billed as frozen", true},
    {"freeze_llm", "is not billed: the language model is billed as it trains"},
    {"freeze_parameters_regex", "is not billed: what it freezes is billed as it trains"},
    {"trainable_parameters_regex", "is not billed: what it lets train is billed as frozen"}};

void read_method(KeyReader& reader, Draft& draft) {
  warn_of_left_out(kLeftOut, reader, draft);
  std::string type = to_lower(reader.text("tuner_type").value_or("lora"));
  if (type == "lora_llm") {  // the towers train whole, which are not counted
    type = "lora";
    draft.warnings.push_back("tuner_type lora_llm trains the vision tower whole, which is not billed");
  }
  if (type == "full") {
    draft.set("method", Value::of("full"));
    if (reader.real("freeze_parameters_ratio").value_or(0) > 0 || reader.is_given("freeze_parameters"))
      draft.warnings.push_back("frozen parameters of a full fine-tuning are billed as if they trained");
    return;
  }
  if (type != "lora" && type != "longlora" && type != "adalora" && type != "vera" && type != "ia3")
    return reader.problem("tuner_type", quoted(type) + " is not billed", "lora, adalora, vera, ia3 or full");
  LoraArguments lora;
  lora.rank = reader.count("lora_rank", 1);
  lora.alpha = reader.count("lora_alpha");
  lora.dropout = reader.real("lora_dropout");
  lora.targets = read_targets(reader, "target_modules");
  if (lora.targets.size() == 1 && lora.targets[0] == "DEFAULT") lora.targets = default_targets(draft);
  if (lora.targets.size() == 1 && lora.targets[0] == "ALL") lora.targets = {"all-linear"};
  if (const auto regex = reader.text("target_regex")) lora.targets = {*regex};
  for (const std::string& parameter : reader.texts("target_parameters")) lora.targets.push_back(parameter);
  lora.modules_to_save = reader.texts("modules_to_save");
  lora.dora = reader.flag("use_dora");
  set_lora(lora, draft);
  if (type != "lora" && type != "longlora") draft.set("method", Value::of(type));
  if (const std::string dtype = dtype_word(reader.text("lora_dtype").value_or("")); !dtype.empty() && dtype != "auto")
    draft.set("adapter.dtype", Value::of(dtype));
}

constexpr double kGrpoBeta = 0.04;  // arguments/rlhf_args.py

void read_lengths(KeyReader& reader, Draft& draft) {
  const bool packing = reader.flag("packing");
  std::optional<std::int64_t> length = reader.count("max_length", 1);
  if (packing && reader.is_given("packing_length")) length = reader.count("packing_length", 1);
  if (!length) length = longest_sequence(draft);
  draft.set("seq", length);
  draft.set("packing", Value::of(packing));
  draft.set("padding_free", Value::of(reader.flag("padding_free") || packing));
  if (!packing && !reader.flag("padding_free")) set_padded(draft);
}

void read_batch(KeyReader& reader, Draft& draft) {
  const std::int64_t batch = reader.count("per_device_train_batch_size", 1).value_or(1);
  if (reader.is_given("gradient_accumulation_steps")) return;
  const std::int64_t world = world_size(draft).value_or(1);
  const std::int64_t rows = batch < 16 && world < 16 ? batch * world : 16;
  draft.set("accumulate", std::optional(std::max<std::int64_t>(1, (16 + rows - 1) / rows)));
}

void read_optimizers(KeyReader& reader, Draft& draft) {
  if (reader.flag("use_galore")) {
    set_optimizer(reader.flag("galore_quantization") ? "q_galore" : "galore", draft);
    draft.set("optimizer_args.rank", Value::of(std::to_string(reader.count("galore_rank", 1).value_or(128))));
    draft.set("optimizer_args.update_proj_gap",
              Value::of(std::to_string(reader.count("galore_update_proj_gap", 1).value_or(50))));
  }
  if (reader.count("lisa_activated_layers").value_or(0) > 0) set_optimizer("lisa", draft);
  if (const auto own = reader.text("optimizer"); own == "muon" || own == "muonclip") set_optimizer("muon", draft);
}

// max_length cuts the prompts of GRPO, and a completion follows each.
void read_completions(KeyReader& reader, Draft& draft) {
  RolloutLengths lengths;
  lengths.prompt = reader.count("max_length", 1);
  lengths.batch = reader.count("per_device_train_batch_size", 1).value_or(lengths.batch);
  lengths.beta = kGrpoBeta;
  read_rollout(lengths, reader, draft);
}

// TRL's PPOTrainer runs it (rlhf_trainers/ppo_trainer.py): four models.
void read_ppo(KeyReader& reader, Draft& draft) {
  constexpr std::int64_t kPrompt = 512, kResponse = 512;
  const std::optional<std::int64_t> prompt = reader.count("max_length", 1);
  if (!prompt) draft.assume("prompts have 512 tokens: max_length is not given");
  std::optional<std::int64_t> response = reader.count("response_length", 1);
  if (!response) response = reader.count("max_completion_length", 1);
  draft.set("stage", Value::of("ppo"));
  draft.set("seq", std::optional(prompt.value_or(kPrompt) + response.value_or(kResponse)));
  draft.set("completion", std::optional(response.value_or(kResponse)));
  for (const char* key : {"num_mini_batches", "local_rollout_forward_batch_size"})
    if (const auto count = reader.count(key, 1)) draft.set(std::string("stage_args.") + key, Value::of(*count));
}

void read_stage(const JobSource& source, KeyReader& reader, Draft& draft) {
  const auto& program = source.launch.program;
  const std::string command = program.size() > 1 ? program[1] : "sft";
  std::string stage = command == "pt" ? "pretrain" : "sft";
  const bool named = command != "sft" && command != "pt" && command != "rlhf";  // 2.x: swift dpo
  if (command == "rlhf" || named || reader.map().find("rlhf_type") != nullptr) {
    const std::string type = named ? command : to_lower(reader.text("rlhf_type").value_or("dpo"));
    stage = type == "rm" ? "reward" : type == "cpo" ? "simpo" : type;
    if (type == "grpo") return read_completions(reader, draft);
    if (type == "ppo") return read_ppo(reader, draft);
    if (type == "gkd")
      return reader.problem("rlhf_type", type + " trains on what it generates, which is not billed",
                            "dpo, orpo, simpo, kto, grpo, ppo or rm");
    if (const auto beta = reader.real("beta")) draft.set("beta", Value::of(*beta));
  }
  draft.set("stage", Value::of(stage));
}

// A causal language model unless task_type says another class (swift/model/register.py).
void read_task(KeyReader& reader, Draft& draft) {
  const std::string task = to_lower(reader.text("task_type").value_or("causal_lm"));
  if (task == "causal_lm") return;
  if (task != "seq_cls")
    return reader.problem("task_type",
                          quoted(task) + " compares rows of a sample, whose number is not said: not billed",
                          "causal_lm or seq_cls");
  draft.set("stage", Value::of("classification"));
  if (const auto labels = reader.count("num_labels", 1)) draft.set("stage_args.num_labels", Value::of(*labels));
}

void read_evaluation(KeyReader& reader, Draft& draft) {
  const bool has_data = reader.real("split_dataset_ratio").value_or(0) > 0 || reader.is_given("val_dataset");
  if (reader.text("eval_strategy") == "no" || !has_data) return;
  draft.set("evaluation.batch", reader.count("per_device_eval_batch_size", 1));
}

int claim(const JobSource& source) {
  if (!source.launch.program.empty() && source.launch.program.front() == "swift") return 100;
  const Value& keys = source.keys;
  const int types = count_keys(keys, "tuner_type train_type sft_type");
  const int own = count_keys(
      keys,
      "model_id_or_path split_dataset_ratio template_type lora_dropout_p load_from_cache_file model max_length "
      "torch_dtype dataset_num_proc lora_rank quant_bits target_modules freeze_vit tuner_backend rlhf_type");
  if (types > 0 && own > 0 && keys.find("context_length") == nullptr && keys.find("micro_batch_size") == nullptr)
    return 90;
  return own >= 4 && keys.find("finetuning_type") == nullptr ? 50 : 0;
}

void read(const JobSource& source, Draft& draft) {
  KeyReader reader(source.keys, source.file, {ms_swift_table(), training_arguments_table()}, draft.problems);
  draft.model = reader.text("model");
  if (draft.model && draft.model->starts_with("qwen1half")) draft.model->replace(4, 5, "1.5");  // 2.x's model_type
  draft.model_key = "model";
  count_local_cards(source.launch, draft);
  read_stage(source, reader, draft);
  read_task(reader, draft);
  if (reader.text("train_backend") == "megatron")
    reader.problem("train_backend", "megatron of ms-swift 2 is not read", "megatron sft of ms-swift 3 and 4");
  const bool ddp = world_size(draft).value_or(1) > 1 && !reader.is_given("deepspeed") && !reader.is_given("fsdp");
  read_training_arguments(reader, !ddp, draft);
  draft.plan.set("evaluation.batch", Value());
  const std::string stage = plan_text(draft, "stage");
  const bool rows_said = stage == "grpo" || stage == "ppo";
  read_method(reader, draft);
  read_base(reader, draft);
  read_autocast(draft);
  read_batch(reader, draft);
  if (!rows_said) read_lengths(reader, draft);
  read_evaluation(reader, draft);
  read_optimizers(reader, draft);
  set_attention(reader.text("attn_impl").value_or(reader.flag("use_flash_attn") ? "flash_attn" : "sdpa"), "attn_impl",
                draft);
  if (const auto sp = reader.count("sequence_parallel_size", 1); sp.value_or(1) > 1) draft.set("parallel.ulysses", sp);
  read_sharding_arguments(reader, source.launch, draft);
  set_quant_storage(reader.text("bnb_4bit_quant_storage").value_or("uint8"), draft);
  draft.add_records(reader);
}

}  // namespace

KeyTable ms_swift_table() { return {kRows, kHarmless, kSource}; }

Importer ms_swift_importer() { return {"ms-swift", "ms-swift's arguments, YAML and JSON", kSource, claim, read}; }

}  // namespace membill::io
