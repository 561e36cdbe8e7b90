// Megatron-SWIFT's arguments (megatron sft, pt, rlhf).
#include "base/text.h"
#include "io/importers/formats.h"
#include "io/importers/megatron_step.h"

namespace membill::io {
namespace {

// Where Megatron-SWIFT changes a default of Megatron's, its row stands here.
constexpr KeyRow kRows[] = {
    {"model", "", "model"},
    {"load", "", "", "model"},
    {"mcore_model", "", "", "model"},
    {"tuner_type", "full", "which parameters train"},
    {"train_type", "", "", "tuner_type"},
    {"lora_rank", "8", "rank of the adapters"},
    {"lora_alpha", "32", "scale of the adapters"},
    {"lora_dropout", "0.05", "dropout before the adapters"},
    {"target_modules", "all-linear", "modules that get an adapter"},
    {"modules_to_save", "", "modules that train whole"},
    {"torch_dtype", "bfloat16", "dtype of the weights"},
    {"micro_batch_size", "1", "micro-batch"},
    {"global_batch_size", "16", "sequences of a step on all cards"},
    {"max_length", "", "tokens of a sequence; absent: the model's maximum"},
    {"seq_length", "", "tokens of a sequence"},
    {"packing", "false", "several samples share a sequence"},
    {"padding_free", "true", "samples are joined without padding"},
    {"use_distributed_optimizer", "true", "the optimizer is sharded"},
    {"recompute_granularity", "selective", "full or selective recompute"},
    {"attention_backend", "flash", "attention kernel"},
    {"moe_token_dispatcher_type", "alltoall", "how rows reach their experts"},
    {"moe_grouped_gemm", "true", "a rank's experts run together"},
    {"task_type", "causal_lm", "what the model's head is for"},
    {"rlhf_type", "", "which preference stage (megatron rlhf)"},
    {"beta", "", "strength of the reference"},
    {"freeze_vit", "true", "whether the vision tower trains"},
    {"freeze_aligner", "true", "whether the projector trains"},
    {"freeze_llm", "false", "whether the language model trains"},
    {"freeze_parameters", "", "parameters that do not train"},
    {"freeze_parameters_regex", "", "parameters that do not train"},
    {"freeze_parameters_ratio", "0.0", "share of the first parameters that do not train"},
    {"trainable_parameters", "", "parameters that train all the same"},
    {"trainable_parameters_regex", "", "parameters that train all the same"},
    {"mcore_ref_model", "", "the reference model"},
};
constexpr std::string_view kHarmless =
    "dataset val_dataset cached_dataset cached_val_dataset split_dataset_ratio template system agent_template "
    "load_from_cache_file "
    "streaming max_epochs num_train_epochs max_steps output_dir save_safetensors merge_lora loss_scale "
    "dataset_* dataloader_* "
    "warmup_* learning_rate eval_* logging_steps columns add_version use_hf attn_impl packing_* "
    "num_labels "
    "problem_type load_safetensors vit_* aligner_* truncation_strategy model_author model_name strict enable_thinking "
    "adapters adapter_load "
    "advantage_estimator batch_p2p_comm bridge_backend calculate_* callbacks center_rewards_coefficient "
    "completion_length_limit_scope cosine_* cp_partition_mode csa_* data_parallel_* data_sharding delta "
    "distrib_optim_* dsa_* dynamic_sample epsilon* f_divergence_type fipo_* fp4_* generation_batch_size gkd_* "
    "greater_is_better group_by_length gym_env importance_sampling_level kl_in_reward label_smoothing "
    "language_model_only "
    "linear_decoupled_in_proj lmbda local_rank logging_level lora_bias max_completion_length max_resample_times "
    "max_shard_size max_turns mcore_ref_adapter megatron_extra_kwargs extra_megatron_kwargs metric_for_best_model "
    "mhc_* "
    "mlp_padding_free move_model_batches mrl_dims mtp_* multi_turn_scheduler muon_* "
    "nccl_comm_warmup num_generations* num_iterations off_policy_* offload_* optimizer_cuda_graph overlong_filter "
    "real_tau reference_free ref_* repetition_* reward_* rollout_* rope_scaling scale_rewards seq_kd "
    "sequence_packing_* "
    "sft_alpha sgd_momentum sleep_level soft_* steps_per_generation sync_ref_model tau_* teacher_* "
    "top_entropy_quantile "
    "train_dataloader_shuffle desirable_weight undesirable_weight vllm_* architectures "
    "original_max_position_embeddings "
    "partial_rotary_factor lora_dtype _teacher_use_disable_adapter "
    "response_prefix add_non_thinking_prefix mcore_adapter perform_initialization use_rslora target_regex loss_type "
    "rpo_alpha "
    "ref_load ref_model truncation_* lazy_tokenize interleave_prob shuffle_buffer_size swanlab* report_to router_* "
    "max_pixels padding_side "
    "expert_tensor_parallel_ check_model hub_* push_* custom_* external_plugins columns sft_ template_* teacher_model";
constexpr std::string_view kSource = "modelscope/ms-swift 4.6: swift/megatron/arguments/megatron_args.py";

// The modules that Megatron joins, by the names of their parts.
std::vector<std::string> usual_names(const std::string& target) {
  if (target == "linear_qkv") return {"q_proj", "k_proj", "v_proj"};
  if (target == "linear_proj") return {"o_proj"};
  if (target == "linear_fc1") return {"gate_proj", "up_proj"};
  if (target == "linear_fc2") return {"down_proj"};
  return {target};
}

constexpr LeftOut kLeftOut[] = {
    {"freeze_vit", "false trains the vision tower, which is billed as frozen", true},
    {"freeze_aligner", "false trains the projector, which is billed as frozen", true},
    {"freeze_llm", "is not billed: the language model is billed as it trains"},
    {"freeze_parameters", "is not billed: what it freezes is billed as it trains"},
    {"freeze_parameters_regex", "is not billed: what it freezes is billed as it trains"},
    {"trainable_parameters_regex", "is not billed: what it lets train is billed as frozen"},
    {"mcore_ref_model", "is not billed: the reference model is billed with the policy's shapes"}};

void read_method(KeyReader& reader, Draft& draft) {
  warn_of_left_out(kLeftOut, reader, draft);
  if (reader.real("freeze_parameters_ratio").value_or(0) > 0)
    draft.warnings.push_back("freeze_parameters_ratio is not billed: what it freezes is billed as it trains");
  reader.use("trainable_parameters");
  draft.set("method", Value::of("full"));
  const std::string type = to_lower(reader.text("tuner_type").value_or("full"));
  if (type == "lora_llm")
    reader.problem("tuner_type", "'lora_llm' trains the vision tower whole, which is not billed", "lora");
  if (type != "lora") return;
  LoraArguments lora;
  lora.rank = reader.count("lora_rank", 1);
  lora.alpha = reader.count("lora_alpha");
  lora.dropout = reader.real("lora_dropout");
  for (const std::string& target : reader.texts("target_modules")) {
    for (const std::string& name : usual_names(target)) lora.targets.push_back(name);
  }
  lora.modules_to_save = reader.texts("modules_to_save");
  set_lora(lora, draft);
}

void read_stage(const JobSource& source, KeyReader& reader, Draft& draft) {
  const auto& program = source.launch.program;
  const std::string type = to_lower(reader.text("rlhf_type").value_or(""));
  std::string stage = program.size() > 1 && program[1] == "pt" ? "pretrain" : "sft";
  if (type == "dpo" || type == "kto") stage = type;
  if (type == "rm") stage = "reward";
  draft.set("stage", Value::of(stage));
  if (const std::string task = to_lower(reader.text("task_type").value_or("causal_lm")); task != "causal_lm")
    reader.problem("task_type", quoted(task) + " is not billed under Megatron", "causal_lm");
  if (type == "grpo" || type == "gkd")
    reader.problem("rlhf_type", type + " trains on what it generates, which is not billed", "dpo, kto or rm");
  if (const auto beta = type.empty() ? std::nullopt : reader.real("beta")) draft.set("beta", Value::of(*beta));
}

void read_lengths(KeyReader& reader, Draft& draft) {
  std::optional<std::int64_t> length = reader.count("max_length", 1);
  if (!length) length = reader.count("seq_length", 1);
  if (!length) length = longest_sequence(draft);
  draft.set("seq", length);
  draft.set("packing", Value::of(reader.flag("packing")));
  draft.set("padding_free", Value::of(reader.flag("padding_free")));
}

int claim(const JobSource& source) {
  if (!source.launch.program.empty() && source.launch.program.front() == "megatron") return 100;
  const int own = count_keys(source.keys,
                             "micro_batch_size global_batch_size tensor_model_parallel_size recompute_granularity "
                             "expert_model_parallel_size pipeline_model_parallel_size");
  const int swift =
      count_keys(source.keys, "model tuner_type train_type load_safetensors save_safetensors split_dataset_ratio");
  return own > 0 && swift >= 2 && source.keys.find("num_layers") == nullptr ? 95 : 0;
}

void read(const JobSource& source, Draft& draft) {
  KeyReader reader(source.keys, source.file, {{kRows, kHarmless, kSource}, megatron_step_table()}, draft.problems);
  draft.model = reader.text("model");
  count_local_cards(source.launch, draft);
  read_stage(source, reader, draft);
  const std::string dtype = dtype_word(reader.text("torch_dtype").value_or("bfloat16"));
  const bool narrow = dtype == "bf16" || dtype == "fp16";
  if (narrow) {
    draft.quantized = true;  // whatever the checkpoint stores is loaded in this dtype
    draft.set("weights", Value::of(dtype));
  }
  read_megatron_step(reader, draft);
  read_lengths(reader, draft);
  read_method(reader, draft);
  if (const Value* tp = draft.plan.find("parallel.tp"); tp != nullptr && tp->is_int() && tp->as_int() < 1'000'000)
    draft.set("vocab_pad_to", std::optional(tp->as_int() * 128));  // make_vocab_size_divisible_by
  if (narrow) draft.set("precision", Value::of("master-" + dtype));
  draft.add_records(reader);
}

}  // namespace

KeyTable megatron_swift_table() { return {kRows, kHarmless, kSource}; }

Importer megatron_swift_importer() { return {"megatron-swift", "Megatron-SWIFT's arguments", kSource, claim, read}; }

}  // namespace membill::io
