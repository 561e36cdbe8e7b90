// TRL's command line and YAML (trl sft, trl dpo, alignment-handbook, open-r1).
#include <utility>

#include "base/release.h"
#include "base/text.h"
#include "io/importers/formats.h"
#include "io/importers/launch_programs.h"
#include "io/importers/rollout.h"
#include "io/importers/shipped_accelerate.h"
#include "io/importers/training_arguments.h"
#include "io/importers/trl_trainers.h"
#include "io/text_file.h"

namespace membill::io {
namespace {

// Where TRL changes a default of TrainingArguments, its row stands here.
constexpr KeyRow kRows[] = {
    {"model_name_or_path", "", "model", {}, "model_config.py"},
    {"model_name", "", "", "model_name_or_path"},
    {"dtype", "float32", "dtype in which the weights are loaded", {}, "model_config.py"},
    {"torch_dtype", "", "", "dtype"},
    {"model_init_kwargs.dtype", "", "", "dtype"},
    {"model_init_kwargs.torch_dtype", "", "", "dtype"},
    {"attn_implementation", "sdpa", "attention kernel", {}, "model_config.py"},
    {"use_flash_attention_2", "", "flash attention, in older recipes"},
    {"gradient_checkpointing", "true", "layers run their forward again in backward", {}, "base_config.py"},
    {"bf16", "", "autocast in bf16; on unless fp16 is", {}, "base_config.py"},
    {"max_length", "1024", "tokens of a sequence"},
    {"max_seq_length", "", "", "max_length"},
    {"max_prompt_length", "", "tokens of the prompt"},
    {"max_completion_length", "", "tokens of the completion"},
    {"sft_model_path", "", "the policy and its reference (ppo)", {}, "ppo_config.py"},
    {"reward_model_path", "", "the reward model and the value model (ppo)", {}, "ppo_config.py"},
    {"response_length", "", "tokens of the completion (ppo)", {}, "ppo_config.py"},
    {"num_mini_batches", "", "updates of one generation (ppo)", {}, "ppo_config.py"},
    {"local_rollout_forward_batch_size", "", "rows that are generated at once (ppo)", {}, "ppo_config.py"},
    {"steps_per_generation", "", "micro-batches that one generation feeds", {}, "grpo_config.py"},
    {"generation_batch_size", "", "completions of one generation on all cards", {}, "grpo_config.py"},
    {"num_iterations", "1", "times that a generation is trained on", {}, "grpo_config.py"},
    {"use_vllm", "false", "vLLM generates", {}, "grpo_config.py"},
    {"vllm_mode", "colocate", "on the same cards or elsewhere", {}, "grpo_config.py"},
    {"vllm_device", "", "the card that vLLM has for itself, before TRL 0.16", {}, "0.15 grpo_config.py"},
    {"vllm_gpu_memory_utilization", "0.3", "share of a card that vLLM takes", {}, "grpo_config.py"},
    {"vllm_enable_sleep_mode", "false", "vLLM gives its memory back while the model trains", {}, "grpo_config.py"},
    {"vllm_importance_sampling_correction", "true", "the model scores what vLLM generated", {}, "grpo_config.py"},
    {"packing", "false", "several samples share a sequence"},
    {"packing_strategy", "bfd", "how samples are packed; bfd joins them without padding"},
    {"padding_free", "false", "samples are joined without padding"},
    {"loss_type", "", "how the loss is computed"},
    {"use_liger_loss", "false", "Liger's chunked loss", {}, "dpo_config.py"},
    {"use_weighting", "false", "each pair's loss is weighted by the policy", {}, "dpo_config.py"},
    {"use_logits_to_keep", "false", "logits of the completions alone", {}, "dpo_config.py"},
    {"disable_dropout", "", "off in the model while preferences train", {}, "dpo_config.py"},
    {"rpo_alpha", "", "weight of the chosen half's likelihood", {}, "dpo_config.py"},
    {"activation_offloading", "false", "kept activations live on the host"},
    {"use_peft", "false", "adapters train", {}, "model_config.py"},
    {"lora_r", "16", "rank of the adapters", {}, "model_config.py"},
    {"lora_alpha", "32", "scale of the adapters", {}, "model_config.py"},
    {"lora_dropout", "0.05", "dropout before the adapters", {}, "model_config.py"},
    {"lora_target_modules", "", "modules that get an adapter", {}, "model_config.py"},
    {"lora_modules_to_save", "", "modules that train whole", {}, "model_config.py"},
    {"use_dora", "false", "DoRA", {}, "model_config.py"},
    {"load_in_8bit", "false", "8-bit base", {}, "model_config.py"},
    {"load_in_4bit", "false", "4-bit base", {}, "model_config.py"},
    {"bnb_4bit_quant_type", "nf4", "4-bit format", {}, "model_config.py"},
    {"use_bnb_nested_quant", "false", "the scales are quantised too", {}, "model_config.py"},
    {"bnb_4bit_quant_storage", "", "dtype that holds the 4-bit weights", {}, "model_config.py"},
    {"beta", "", "strength of the reference"},
    {"cpo_alpha", "1.0", "weight of the chosen answers' own loss (cpo)", {}, "../experimental/cpo/cpo_config.py"},
    {"cast_lm_head_to_fp32", "", "the head in fp32 (grpo)"},
    {"generate_during_eval", "", "the evaluation generates"},
    {"entropy_coef", "0.0", "the entropy of each token counts (grpo)"},
    {"top_entropy_quantile", "1.0", "the entropy of each token is needed (grpo)"},
    {"num_generations", "", "completions of one prompt"},
    {"precompute_ref_log_probs", "false", "the reference runs before training"},
    {"accelerate_config", "", "accelerate's file, or the name of one that TRL ships", {}, "../scripts/utils.py"},
    {"num_processes", "", "cards in all", {}, "../scripts/utils.py"},
    {"lora_target_parameters", "", "3-D parameters that get an adapter", {}, "model_config.py"},
    {"prepare_model_for_kbit_training", "", "the program hands the model to PEFT's function"},
    {"spectrum_config_path", "", "which layers train (Spectrum, in scripts of their own)"},
};

// Defaults of earlier releases.
constexpr KeyRow kBefore022[] = {{"gradient_checkpointing", "false", "layers run their forward again in backward"}};
constexpr KeyRow kBefore020[] = {{"packing_strategy", "ffd", "how samples are packed; ffd joins them without padding"}};
constexpr KeyRow kBefore019[] = {{"bf16", "false", "autocast in bf16"},
                                 {"packing_strategy", "wrapped", "samples are cut where a sequence is full"}};
// examples/scripts/sft.py had arguments of its own.
constexpr std::string_view kFirstKeys = "batch_size seq_length peft_lora_r peft_lora_alpha";
constexpr KeyRow kBefore08[] = {{"per_device_train_batch_size", "64", "micro-batch"},
                                {"batch_size", "", "", "per_device_train_batch_size"},
                                {"gradient_accumulation_steps", "16", "micro-batches of a step"},
                                {"max_length", "512", "tokens of a sequence"},
                                {"seq_length", "", "", "max_length"},
                                {"lora_r", "64", "rank of the adapters"},
                                {"peft_lora_r", "", "", "lora_r"},
                                {"lora_alpha", "16", "scale of the adapters"},
                                {"peft_lora_alpha", "", "", "lora_alpha"},
                                {"lora_dropout", "0.0", "dropout before the adapters"},
                                {"bnb_4bit_quant_type", "fp4", "4-bit format"}};
constexpr KeyRow kGrpoBefore019[] = {{"beta", "0.04", "strength of the reference"}};
constexpr KeyRow kRloo[] = {{"beta", "0.05", "strength of the reference"}};
constexpr KeyRow kRolloutBefore1[] = {{"vllm_mode", "server", "on the same cards or elsewhere"}};
constexpr KeyRow kRolloutBefore110[] = {{"max_completion_length", "256", "tokens of the completion"}};

constexpr std::string_view kHarmless =
    "model_revision trust_remote_code chat_template chat_template_path dataset_name dataset_config dataset_config_name "
    "dataset_mixer* "
    "dataset_mixture* dataset_splits dataset_configs dataset_train_split dataset_test_split dataset_num_proc "
    "dataset_kwargs* "
    "dataset_text_field dataset_batch_size dataset_prompt_column dataset_id preprocessing_num_workers eos_token "
    "pad_token "
    "truncation_mode shuffle_dataset pad_to_multiple_of eval_packing completion_only_loss assistant_only_loss "
    "router_aux_loss_coef "
    "lora_task_type use_rslora tokenizer_name_or_path system_prompt auto_insert_empty_system_msg add_generation_prompt "
    "text_column "
    "callbacks benchmarks reward_funcs reward_weights scale_rewards log_completions temperature top_p vllm_* "
    "wandb_* "
    "mask_truncated_completions code_* cosine_* hub_model_revision lr_scheduler_kwargs* torch_empty_cache_steps "
    "simpo_gamma alpha label_smoothing ld_alpha f_alpha_divergence_coef discopop_tau ref_model_mixup_alpha "
    "ref_model_sync_steps precompute_ref_batch_size desirable_weight undesirable_weight "
    "is_encoder_decoder padding_value label_pad_token_id max_target_length top_k min_p generation_kwargs* "
    "chat_template_kwargs* epsilon delta sapo_temperature_* vespo_* importance_sampling_level "
    "multi_objective_aggregation use_adaptive_entropy entropy_coef_* entropy_target max_tool_calling_iterations "
    "off_policy_mask_threshold use_bias_correction_kl log_multimodal log_unique_prompts log_completions_hub_repo "
    "use_transformers_* transformers_continuous_batching_config* cache_implementation num_generations_eval "
    "ds3_gather_for_generation dataset_streaming reference_free model_adapter_name ref_adapter_name "
    "force_use_ref_model center_rewards_coefficient tools remove_columns "
    "num_completions_to_print ground_truth_column rlhf_only_ stage_ loss_weights* concatenate_datasets "
    "add_special_tokens "
    "benchmark* custom_stopping_criteria repetition_penalty epsilon_high sync_ref_model "
    "output_router_logits "
    "ignore_bias_buffers max_concurrent* parallel_code_exec_per_proc e2b_* morph_* provider_type "
    "num_processes_ "
    "dataset_seed pad_to_sequence_len use_cache f_divergence_type dataset truncation_side";

constexpr std::string_view kSource = "huggingface/trl f2cd577: trl/trainer/sft_config.py";

// Source: trl 0.24 trainer/ppo_config.py.
void read_ppo(KeyReader& reader, Draft& draft) {
  constexpr std::int64_t kPrompt = 512, kResponse = 53;
  draft.assume("prompts have 512 tokens: PPOTrainer takes the data's own");
  const std::int64_t response = reader.count("response_length", 1).value_or(kResponse);
  draft.set("stage", Value::of("ppo"));
  draft.set("seq", std::optional(kPrompt + response));
  draft.set("completion", std::optional(response));
  for (const char* key : {"num_mini_batches", "local_rollout_forward_batch_size"})
    if (const auto count = reader.count(key, 1)) draft.set(std::string("stage_args.") + key, Value::of(*count));
  const std::optional<std::string> policy = reader.text("sft_model_path"), judge = reader.text("reward_model_path");
  if (policy) draft.model = policy;
  if (judge && judge != draft.model)
    draft.assume("the reward model and the value model are billed with the policy's shapes");
}

// Of DPO before 1.0 for the most part.
void read_arguments(KeyReader& reader, Draft& draft) {
  for (const char* key : {"use_liger_loss", "use_weighting", "use_logits_to_keep"}) {
    const bool tells_apart = std::string_view(key) == "use_liger_loss" && reader.flag("use_liger_kernel");
    if (reader.flag(key) || tells_apart) draft.set(std::string("stage_args.") + key, Value::of(reader.flag(key)));
  }
}

void read_stage(const std::string& trainer, KeyReader& reader, Draft& draft) {
  if (trainer == "ppo") return read_ppo(reader, draft);
  if (trainer == "rloo") draft.assume("RLOO is billed as GRPO: the same forwards and losses of the same size");
  if (trainer == "grpo" || trainer == "rloo") {
    RolloutLengths lengths;
    lengths.prompt = reader.count("max_prompt_length", 1);
    lengths.batch = reader.count("per_device_train_batch_size", 1).value_or(lengths.batch);
    if (reader.flag("use_liger_loss")) draft.set("stage_args.use_liger_loss", Value::of(true));
    if (reader.maybe_flag("vllm_importance_sampling_correction") == false)
      draft.set("stage_args.vllm_importance_sampling_correction", Value::of(false));
    return read_rollout(lengths, reader, draft);
  }
  std::string stage = trainer == "cpo" ? "simpo" : trainer;
  draft.set("stage", Value::of(stage));
  if (stage == "sft") return;
  if (reader.maybe_flag("disable_dropout") == false) draft.set("stage_args.disable_dropout", Value::of(false));
  if (stage == "reward") return;
  draft.set("prompt", reader.count("max_prompt_length", 1));
  if (const auto beta = reader.real("beta")) draft.set("beta", Value::of(*beta));
  if (trainer == "cpo") take_stage_numbers("cpo_alpha", reader, draft);
  if (stage == "dpo") take_stage_numbers("rpo_alpha", reader, draft);
  read_arguments(reader, draft);
  if (const std::vector<std::string> losses = reader.texts("loss_type"); !losses.empty()) {
    draft.set("stage_args.loss_type", Value::of(losses.front()));
    if (losses.size() > 1) draft.assume("of several losses over the same log-probabilities the first is billed");
  }
  if (reader.flag("precompute_ref_log_probs")) draft.set("reference", Value::of("precompute"));
}

void read_base(KeyReader& reader, Draft& draft) {
  std::string dtype = reader.text("dtype").value_or("float32");
  if (dtype == "from_pretrained")  // its default, in a program
    dtype = plan_text(draft, "software.transformers").starts_with("4.") ? "float32" : "auto";
  draft.load_dtype = dtype_word(dtype);
  if (draft.load_dtype.empty()) {
    reader.problem("dtype", "has the unknown value " + quoted(dtype), "float32, bfloat16, float16 or auto");
    draft.load_dtype = "fp32";
  }
  const bool nested = reader.flag("use_bnb_nested_quant");
  if (reader.flag("load_in_4bit")) {
    set_bits(4, reader.text("bnb_4bit_quant_type").value_or("nf4"), nested, false, draft);
  } else if (reader.flag("load_in_8bit")) {
    set_bits(8, "", false, false, draft);
  }
  const bool flash =
      !reader.is_given("attn_implementation") && reader.maybe_flag("use_flash_attention_2").value_or(false);
  set_attention(flash ? "flash_attention_2" : reader.text("attn_implementation").value_or("sdpa"),
                "attn_implementation", draft);
}

void read_adapters(KeyReader& reader, Draft& draft) {
  if (!reader.flag("use_peft")) return draft.set("method", Value::of("full"));
  LoraArguments lora;
  lora.rank = reader.count("lora_r", 1);
  lora.alpha = reader.count("lora_alpha");
  lora.dropout = reader.real("lora_dropout");
  lora.targets = read_targets(reader, "lora_target_modules");
  lora.modules_to_save = reader.texts("lora_modules_to_save");
  lora.dora = reader.flag("use_dora");
  set_lora(lora, draft);
}

void read_lengths(KeyReader& reader, Draft& draft) {
  if (const std::string stage = plan_text(draft, "stage"); stage == "grpo" || stage == "ppo") return;
  const bool packing = reader.flag("packing");
  if (reader.is_null("max_length") && reader.map().find("max_length") != nullptr && !packing) {
    draft.assume("max_length null does not cut: 2048 taken, --seq says it");
  } else {
    draft.set("seq", reader.count("max_length", 1));
  }
  const bool joins = packing && reader.text("packing_strategy") != "wrapped";
  const bool free = reader.flag("padding_free") || joins;
  draft.set("packing", Value::of(packing));
  draft.set("padding_free", Value::of(free));
  if (!packing && !free) set_padded(draft);
}

// The keys with the defaults of the release that runs the job. The loss follows from it, too: over whole logits before 1.0, by the fused
// head since.
std::vector<KeyTable> tables_of_release(const std::string& trainer, const Value& keys, Draft& draft) {
  const bool first = count_keys(keys, kFirstKeys) > 0 && keys.find("model_name") != nullptr;
  take_release("trl", first ? "0.7" : keys.find("vllm_device") != nullptr ? "0.15" : "1.16", draft);
  const std::string release = plan_text(draft, "software.trl");
  std::vector<KeyTable> tables;
  const auto add = [&](std::span<const KeyRow> rows, int minor, std::string_view source) {
    if (is_before(release, 0, minor)) tables.push_back({rows, {}, source});
  };
  if (trainer == "grpo" || trainer == "rloo") {
    if (is_before(release, 1, 0)) tables.push_back({kRolloutBefore1, {}, "trl 0.29 trainer/grpo_config.py"});
    if (is_before(release, 1, 10)) tables.push_back({kRolloutBefore110, {}, "trl 1.9 trainer/grpo_config.py"});
  }
  if (trainer == "rloo") tables.push_back({kRloo, {}, "trl 1.16 trainer/rloo_config.py"});
  if (trainer == "grpo") add(kGrpoBefore019, 19, "trl 0.18 trainer/grpo_config.py");
  if (first) add(kBefore08, 8, "trl 0.7 examples/scripts/sft.py");
  add(kBefore019, 19, "trl 0.18 trainer/sft_config.py");
  add(kBefore020, 20, "trl 0.19 trainer/sft_config.py");
  add(kBefore022, 22, "trl 0.21: transformers training_args.py");
  tables.insert(tables.end(), {trl_table(), training_arguments_table()});
  return tables;
}

// trl 1.16 trainer/dpo_trainer.py: off for the time being.
void pad_pairs(KeyReader& reader, Draft& draft) {
  const bool joins = plan_text(draft, "stage") == "dpo" && reader.flag("padding_free");
  if (!joins || plan_text(draft, "software.trl").starts_with("0.")) return;
  draft.set("padding_free", Value::of(false));
  set_padded(draft);
  draft.warnings.push_back("padding_free: trl 1.16's DPOTrainer pads its rows nevertheless");
}

// trl sft starts accelerate itself, by keys of the file or flags.
Launch launch_of(const JobSource& source, KeyReader& reader, Draft& draft) {
  Launch launch = source.launch;
  if (const auto name = launch.accelerate ? std::nullopt : reader.text("accelerate_config")) {
    if (const std::optional<ShippedAccelerate> shipped = shipped_accelerate(*name, source)) {
      launch.accelerate = shipped->config;
      draft.assume("accelerate_config " + *name + " is the file of that name that " + shipped->owner + " ships");
    } else {
      launch.accelerate = read_part(*name, draft, "accelerate_config");
    }
    launch.accelerate_file = last_name(*name);
  }
  if (const auto processes = reader.count("num_processes", 1)) {
    if (!launch.accelerate) launch.accelerate = Value::make_map();
    launch.accelerate->set("num_processes", Value::of(*processes));
  }
  return launch;
}

void read_offloading(KeyReader& reader, Draft& draft) {
  if (!reader.flag("activation_offloading")) return;
  draft.set("checkpointing.offload", Value::of(true));
}

constexpr LeftOut kLeftOut[] = {
    {"cast_lm_head_to_fp32", "is not billed: the head is billed in the dtype of the model"},
    {"spectrum_config_path", "freezes what it does not name: all weights are billed as trained"},
    {"generate_during_eval", "lets the evaluation generate, which is not billed"}};

// What the loss needs beside the tokens' own log-probabilities.
void state_what_is_left_out(KeyReader& reader, Draft& draft) {
  warn_of_left_out(kLeftOut, reader, draft);
  if (plan_text(draft, "stage") != "grpo") return;
  if (reader.real("entropy_coef").value_or(0) > 0 || reader.real("top_entropy_quantile").value_or(1) < 1)
    draft.warnings.push_back("the entropy of each token is kept for the loss, which is not billed");
}

// TRL before 1.0, and the trainers of ORPO and CPO since, hand a quantised model to PEFT's prepare_model_for_kbit_training.
void read_preparation(KeyReader& reader, Draft& draft) {
  const std::string stage = plan_text(draft, "stage");
  const bool prepares = plan_text(draft, "software.trl").starts_with("0.") || stage == "orpo" || stage == "simpo" ||
                        reader.flag("prepare_model_for_kbit_training");
  if (draft.quantized && prepares && stage != "ppo") draft.set("kbit_prepare", Value::of(true));
  // trl 0.4 trainer/sft_trainer.py: with the function's own default, which checkpoints.
  if (draft.quantized && stage == "sft" && is_before(plan_text(draft, "software.trl"), 0, 5)) {
    draft.set("checkpointing", Value::of("full"));
    draft.set("checkpointing.reentrant", Value::of(true));
  }
}

int claim(const JobSource& source) {
  const Value& keys = source.keys;
  if (!source.launch.program.empty() && source.launch.program.front() == "trl") return 100;
  if (!source.launch.program.empty() && is_transformers_example(source.launch.program.front())) return 0;
  if (count_keys(keys,
                 "lora_enable use_lora use_qlora q_lora full_finetune train_mode lora_target use_peft_lora "
                 "model_max_length use_4bit_quantization bits source_max_len block_size "
                 "train_file validation_file dataset_config_name max_source_length") > 0)
    return 0;
  const bool trainer = count_keys(keys,
                                  "per_device_train_batch_size output_dir learning_rate gradient_accumulation_steps "
                                  "num_train_epochs model_name_or_path gradient_checkpointing bf16") >= 3;
  if (!trainer) return count_keys(keys, "dataset_name max_length use_peft model_name_or_path lora_r") >= 3 ? 30 : 0;
  const int own =
      count_keys(keys,
                 "dataset_mixer dataset_mixture chat_template use_peft lora_target_modules dataset_config "
                 "dataset_text_field packing_strategy padding_free assistant_only_loss completion_only_loss "
                 "chat_template_path reward_funcs num_generations use_bnb_nested_quant lora_r model_init_kwargs "
                 "dataset_train_split load_in_4bit attn_implementation dataset_name max_length");
  const bool named =
      source.arguments && !mentions(source, "sft") && !mentions(source, "dpo") && !mentions(source, "trl");
  return own >= 2 ? 60 : own == 0 ? 0 : named ? 30 : 40;  // a script of another name may have that one flag itself
}

void read(const JobSource& source, Draft& draft) {
  refuse_unbilled(source, draft);
  const std::string trainer = trainer_of(source, draft);
  KeyReader reader(source.keys, source.file, tables_of_release(trainer, source.keys, draft), draft.problems);
  draft.model = reader.text("model_name_or_path");
  draft.model_key = "model_name_or_path";
  read_stage(trainer, reader, draft);
  read_training_arguments(reader, false, draft);
  draft.bf16 = reader.maybe_flag("bf16").value_or(!draft.fp16);
  draft.fp16 = draft.fp16 && !draft.bf16;
  read_base(reader, draft);
  read_adapters(reader, draft);
  read_lengths(reader, draft);
  read_offloading(reader, draft);
  reader.use("loss_type");
  pad_pairs(reader, draft);
  state_what_is_left_out(reader, draft);
  read_preparation(reader, draft);
  read_sharding_arguments(reader, launch_of(source, reader, draft), draft);
  set_quant_storage(reader.text("bnb_4bit_quant_storage").value_or("uint8"), draft);
  draft.add_records(reader);
}

}  // namespace

KeyTable trl_table() { return {kRows, kHarmless, kSource}; }

Importer trl_importer() { return {"trl", "TRL's YAML and flags", kSource, claim, read}; }

}  // namespace membill::io
