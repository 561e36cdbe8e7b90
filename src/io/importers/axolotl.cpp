// axolotl's YAML (axolotl train).
#include <algorithm>

#include "base/text.h"
#include "io/importers/accelerate.h"
#include "io/importers/axolotl_keys.h"
#include "io/importers/deepspeed.h"
#include "io/importers/formats.h"
#include "io/importers/fsdp.h"
#include "io/importers/rollout.h"
#include "io/importers/sequence_ranks.h"
#include "io/importers/training_arguments.h"

namespace membill::io {
namespace {

constexpr std::string_view kSource = "axolotl-ai-cloud/axolotl 067b021: src/axolotl/utils/schemas/config.py";

// `sequence_len` holds the prompt and its completion.
void read_completions(KeyReader& reader, Draft& draft) {
  RolloutLengths lengths;
  lengths.prefix = "trl.";
  lengths.row = reader.count("sequence_len", 1);
  lengths.batch = reader.count("micro_batch_size", 1).value_or(lengths.batch);
  read_rollout(lengths, reader, draft);
}

// core/builders/rl.py: what goes to TRL's configurations, with their defaults.
void read_preference(const std::string& stage, KeyReader& reader, Draft& draft) {
  if (stage == "simpo") take_stage_numbers("cpo_alpha", reader, draft);
  if (stage == "orpo" && reader.is_given("orpo_alpha"))
    draft.set("beta", Value::of(reader.real("orpo_alpha").value_or(0.1)));
  if (stage != "dpo") return;
  take_stage_numbers("rpo_alpha", reader, draft);
  if (const std::vector<std::string> losses = reader.texts("dpo_loss_type"); !losses.empty())
    draft.set("stage_args.loss_type", Value::of(losses.front()));
  if (reader.flag("dpo_use_liger_kernel")) draft.set("implementation", Value::of("liger"));
}

void read_stage(KeyReader& reader, Draft& draft) {
  if (reader.flag("gkd_trainer"))
    reader.problem("gkd_trainer", "runs a teacher and trains on what it generates, which is not billed");
  const std::string rl = to_lower(reader.text("rl").value_or(""));
  std::string stage = reader.is_given("pretraining_dataset") ? "pretrain" : "sft";
  if (reader.flag("reward_model") || reader.flag("process_reward_model")) stage = "reward";
  if (rl == "dpo" || rl == "ipo") stage = "dpo";
  if (rl == "orpo" || rl == "simpo" || rl == "kto") stage = rl;
  if (rl == "grpo" || rl == "gdpo") stage = "grpo";
  if (rl == "ebft" || rl == "ppo")
    reader.problem("rl", rl + " trains on what it generates, which is not billed",
                   "dpo, ipo, orpo, simpo, kto or grpo");
  draft.set("stage", Value::of(stage));
  if (stage == "grpo") read_completions(reader, draft);
  if (rl == "ipo") draft.set("stage_args.loss_type", Value::of("ipo"));
  if (const auto beta = rl.empty() ? std::nullopt : reader.real("rl_beta")) draft.set("beta", Value::of(*beta));
  if (!rl.empty() && reader.flag("precompute_ref_log_probs")) draft.set("reference", Value::of("precompute"));
  read_preference(stage, reader, draft);
}

void read_precision(KeyReader& reader, Draft& draft) {
  const bool automatic = reader.text("bf16") == "auto";
  draft.fp16 = reader.text("fp16") != "auto" && reader.flag("fp16");
  draft.bf16 =
      automatic ? !draft.fp16 && !reader.flag("float16") : reader.text("bf16") == "full" || reader.flag("bf16");
  draft.load_dtype = draft.bf16 || reader.flag("bfloat16")  ? "bf16"
                     : draft.fp16 || reader.flag("float16") ? "fp16"
                                                            : "fp32";
  if (reader.flag("bfloat16") && !reader.is_given("bf16")) draft.bf16 = false;
  if (reader.flag("fp8")) draft.warnings.push_back("fp8 linears are billed as bf16 ones");
}

// loaders/model.py: bnb_config_kwargs count beside adapter qlora only.
void read_four_bits(KeyReader& reader, bool qlora, Draft& draft) {
  if (!qlora) return set_bits(4, "nf4", true, false, draft);
  const std::string prefix = "bnb_config_kwargs.";
  set_bits(4, reader.text(prefix + "bnb_4bit_quant_type").value_or("nf4"),
           reader.flag(prefix + "bnb_4bit_use_double_quant"), false, draft);
  if (const auto skip = reader.texts(prefix + "llm_int8_skip_modules"); !skip.empty())
    draft.set("quantization.skip", texts_value(skip));
}

// loaders/model.py: only a configuration that unpacks lets the weights be what the checkpoint's packed ones stand for.
void read_stored(KeyReader& reader, Draft& draft) {
  const auto config = reader.text("model_quantization_config");
  if (!config || reader.flag("model_quantization_config_kwargs.dequantize")) return;
  if (*config != "Mxfp4Config")
    return draft.warnings.push_back("model_quantization_config " + *config + " is not billed");
  draft.quantized = true;
  draft.set("weights", Value::of("mxfp4"));
}

void read_method(KeyReader& reader, Draft& draft) {
  const std::string adapter = to_lower(reader.text("adapter").value_or(""));
  const bool four = reader.flag("load_in_4bit") || adapter == "qlora", eight = reader.flag("load_in_8bit") && !four;
  if (adapter == "lora" || adapter == "qlora") {
    LoraArguments lora;
    lora.rank = reader.count("lora_r", 1);
    lora.alpha = reader.count("lora_alpha");
    lora.dropout = reader.real("lora_dropout");
    lora.targets = reader.flag("lora_target_linear") ? std::vector<std::string>{"all-linear"}
                                                     : read_targets(reader, "lora_target_modules");
    for (const std::string& parameter : reader.texts("lora_target_parameters")) lora.targets.push_back(parameter);
    lora.modules_to_save = reader.texts("lora_modules_to_save");
    lora.exclude = reader.texts("lora_exclude_modules");
    if (const Value* layers = reader.given("peft_layers_to_transform")) lora.layers = *layers;
    lora.ranks = read_pattern(reader, "lora_rank_pattern");
    (void)read_pattern(reader, "lora_alpha_pattern");
    lora.dora = reader.flag("peft_use_dora");
    set_lora(lora, draft);
    if (!reader.flag("peft_autocast_adapter_dtype")) draft.set("adapter.dtype", Value::of(draft.load_dtype));
  } else if (!adapter.empty()) {
    reader.problem("adapter", quoted(adapter) + " is not billed", "lora or qlora");
  } else if (const std::vector<std::string> names = reader.texts("unfrozen_parameters"); !names.empty()) {
    draft.set("method", Value::of("freeze"));
    draft.set("freeze.trainable_layers", Value::of(0));
    std::vector<Value> patterns;
    patterns.reserve(names.size());
    for (const std::string& name : names) patterns.push_back(Value::of(in_new_names(name)));
    draft.set("freeze.trainable_modules", Value::make_list(std::move(patterns)));
  } else {
    draft.set("method", Value::of("full"));
  }
  read_stored(reader, draft);
  if (four) read_four_bits(reader, adapter == "qlora", draft);
  if (eight) set_bits(8, "", false, false, draft);
  if (reader.flag("gptq")) {
    draft.quantized = true;
    draft.set("weights", Value::of("gptq-int4"));
  }
}

void read_batch(KeyReader& reader, Draft& draft) {
  const std::int64_t micro = reader.count("micro_batch_size", 1).value_or(1);
  draft.set("batch", std::optional(micro));
  draft.set("accumulate", reader.count("gradient_accumulation_steps", 1));
  if (const auto whole = reader.count("batch_size", 1); whole && !reader.is_given("gradient_accumulation_steps"))
    draft.set("accumulate", std::optional(std::max<std::int64_t>(1, *whole / micro)));
  draft.set("seq", reader.count("sequence_len", 1));
  const auto packed = reader.count("max_packed_sequence_len", 1);
  const bool packing = reader.flag("sample_packing") || packed.has_value();
  if (packed) draft.set("seq", packed);
  draft.set("packing", Value::of(packing));
  if (reader.text("batch_flattening") == "auto" || reader.flag("batch_flattening"))
    draft.set("padding_free", Value::of(true));
  if (plan_text(draft, "stage") == "dpo" && reader.flag("dpo_padding_free")) draft.set("padding_free", Value::of(true));
  if (!packing && !reader.flag("pad_to_sequence_len")) set_padded(draft);
  const bool evaluates = reader.real("val_set_size").value_or(0) > 0 || reader.is_given("test_datasets");
  if (evaluates && reader.text("eval_strategy") != "no")
    draft.set("evaluation.batch", std::optional(reader.count("eval_batch_size", 1).value_or(micro)));
}

void read_saving(KeyReader& reader, Draft& draft) {
  for (const char* key : {"save_strategy", "save_steps", "saves_per_epoch"})
    draft.saves = draft.saves || reader.is_given(key);
  const std::string strategy = to_lower(reader.text("save_strategy").value_or(""));
  draft.saves = draft.saves && strategy != "no" && strategy != "false";
  (void)reader.text("save_steps"), (void)reader.text("saves_per_epoch");
  if (draft.saves && reader.flag("save_only_model")) draft.set("save.optimizer", Value::of(false));
}

void read_checkpointing(KeyReader& reader, Draft& draft) {
  const std::string word = to_lower(reader.text("gradient_checkpointing").value_or("false"));
  const bool offload = word.starts_with("offload") || word == "unsloth";
  const std::string activations = to_lower(reader.text("activation_offloading").value_or("false"));
  const bool on = offload || reader.flag("gradient_checkpointing");
  draft.set("checkpointing", Value::of(on ? "full" : "none"));
  if (!on) return;
  draft.set("checkpointing.reentrant", Value::of(reader.flag("gradient_checkpointing_kwargs.use_reentrant")));
  if (offload || (activations != "false" && activations != "none")) draft.set("checkpointing.offload", Value::of(true));
}

void read_attention(KeyReader& reader, Draft& draft) {
  static constexpr std::pair<const char*, const char*> kSwitches[] = {
      {"flash_attention", "flash_attention_2"}, {"sdp_attention", "sdpa"},  {"xformers_attention", "xformers"},
      {"flex_attention", "flex_attention"},     {"sage_attention", "sage"}, {"eager_attention", "eager"}};
  std::string name = reader.text("attn_implementation").value_or("sdpa");
  for (const auto& [key, kernel] : kSwitches) {
    if (reader.flag(key)) name = kernel;
  }
  set_attention(name, "attn_implementation", draft);
}

// Multipack fills one row of micro_batch_size x sequence_len tokens for kernels that take the documents' boundaries, and real batches
// with a padding mask for others (core/builders/causal.py).
void read_packing(KeyReader& reader, Draft& draft) {
  const Value* packing = draft.plan.find("packing");
  if (packing == nullptr || !packing->as_bool()) return;
  std::string kernel = plan_text(draft, "attention");
  if (kernel == "mem-efficient") {
    draft.set("attention", Value::of(kernel = "flash"));
    draft.assume("xformers' attention over packed documents is billed as flash attention");
  }
  const bool real_batches = reader.maybe_flag("multipack_real_batches").value_or(kernel != "flash");
  draft.set("padding_free", Value::of(!real_batches));
  if (real_batches && kernel != "flash") draft.set("attention_mask", Value::of(true));
}

// integrations/liger: each kernel has a key of its own.
void read_liger(KeyReader& reader, Draft& draft) {
  const bool fused = reader.flag("liger_fused_linear_cross_entropy"), whole = reader.flag("liger_cross_entropy");
  draft.set("implementation", Value::of("liger"));
  draft.set("liger.rope", Value::of(reader.flag("liger_rope")));
  draft.set("liger.rms_norm", Value::of(reader.flag("liger_rms_norm")));
  draft.set("liger.swiglu", Value::of(reader.flag("liger_glu_activation")));
  draft.set("liger.cross_entropy", Value::of(fused || whole));
  if (whole && !fused) draft.set("loss", Value::of("native"));
}

void read_loss(KeyReader& reader, Draft& draft) {
  bool liger = false, cut = false;
  for (const std::string& plugin : reader.texts("plugins")) {
    liger = liger || plugin.ends_with("LigerPlugin");
    cut = cut || plugin.ends_with("CutCrossEntropyPlugin");
  }
  if (liger) read_liger(reader, draft);
  cut = cut ? reader.maybe_flag("cut_cross_entropy").value_or(true) : reader.flag("cut_cross_entropy");
  if (cut) return draft.set("loss", Value::of("fused"));
  if (!reader.flag("chunked_cross_entropy")) return;
  const std::int64_t chunks = reader.count("chunked_cross_entropy_num_chunks", 1).value_or(8);
  const Value* batch = draft.plan.find("batch");
  const Value* seq = draft.plan.find("seq");
  if (batch == nullptr || seq == nullptr || batch->as_int() > 1'000'000 || seq->as_int() > 1'000'000'000) return;
  const std::int64_t rows = std::max<std::int64_t>(1, batch->as_int() * seq->as_int() / chunks);
  draft.set("loss", Value::of("chunked:" + std::to_string(rows)));
}

void read_engine(KeyReader& reader, const JobSource& source, Draft& draft) {
  if (const auto world = reader.count("world_size", 1)) draft.processes = world;
  const Value* config = reader.given("fsdp_config");
  if (const Value* deepspeed = reader.given("deepspeed"); deepspeed != nullptr && value_text(*deepspeed) != "false") {
    read_deepspeed_argument(*deepspeed, "deepspeed", {draft.bf16, draft.fp16}, draft);
  } else if (config != nullptr || reader.is_given("fsdp")) {
    FsdpSurroundings around;
    around.prefix = "fsdp_config.";
    around.version = reader.count("fsdp_version", 1).value_or(1);
    for (const std::string& word : reader.texts("fsdp")) {
      if (to_lower(word) == "offload") around.offload = true;
      if (word.find("shard") != std::string::npos) around.strategy = to_lower(word);
    }
    draft.fsdp_upcasts = true;
    read_fsdp_part(config == nullptr ? Value::make_map() : *config, draft.file, around, draft);
  }
  if (source.launch.accelerate) read_accelerate_part(*source.launch.accelerate, source.launch.accelerate_file, draft);
  for (const auto& [key, plan] :
       {std::pair("tensor_parallel_size", "parallel.tp"), std::pair("expert_parallel_size", "parallel.ep")}) {
    if (const auto degree = reader.count(key, 1); degree.value_or(1) > 1) draft.set(plan, degree);
  }
  spread_sequences(reader.count("context_parallel_size", 1), "parallel.cp", "axolotl", draft);
  take_data_parallel(reader, "dp_replicate_size", "dp_shard_size", draft);
  if (const auto bucket = reader.count("ddp_bucket_cap_mb", 1); bucket && plan_text(draft, "engine").empty())
    draft.set("sharding.bucket_cap_mb", bucket);
  if (plan_text(draft, "engine").empty() &&
      world_size(draft).value_or(1) > 1)  // core/builders: bool(cfg.ddp_find_unused_parameters)
    draft.set("sharding.find_unused_parameters",
              Value::of(reader.maybe_flag("ddp_find_unused_parameters").value_or(false)));
}

// core/builders/base.py: Q-GaLore's keys are its own.
void read_low_rank(KeyReader& reader, Draft& draft) {
  const std::string optimizer = plan_text(draft, "optimizer");
  if (optimizer.find("galore") == std::string::npos) return;
  for (const auto& [key, argument] : {std::pair("qgalore_rank", "optimizer_args.rank"),
                                      std::pair("qgalore_update_proj_gap", "optimizer_args.update_proj_gap")})
    if (const auto count = reader.count(key, 1)) draft.set(argument, Value::of(std::to_string(*count)));
}

constexpr LeftOut kLeftOut[] = {
    {"lora_mlp_kernel", "keeps fewer activations of the MLP: adapters are billed as PEFT runs them"},
    {"lora_qkv_kernel", "keeps fewer activations of attention: adapters are billed as PEFT runs them"},
    {"lora_o_kernel", "keeps fewer activations of attention: adapters are billed as PEFT runs them"},
    {"lora_embedding_kernel", "keeps fewer activations: adapters are billed as PEFT runs them"},
    {"ple_cpu_offload", "is not billed: per-layer embeddings are billed on the card"},
    {"tiled_mlp", "is not billed: the MLP is billed over whole sequences"},
    {"qat", "is not billed: weights are billed without fake quantisation"},
    {"peft_trainable_token_indices", "is not billed: the embedding is billed as frozen"},
    {"peft_layer_replication", "is not billed: each layer is billed once"},
    {"selective_checkpointing", "is not billed: layers are billed as checkpointed whole"},
    {"layer_offloading", "is not billed: frozen layers are billed on the card"},
    {"flash_attn_rms_norm", "is billed as the model's own RMSNorm"},
    {"flash_attn_fuse_mlp", "is billed as the model's own MLP"},
    {"flash_optimum", "is not billed: the attention kernel is billed as elsewhere said"},
    {"use_kernels", "is not billed: layers are billed as Transformers writes them"},
    {"use_scattermoe", "is not billed: experts are billed as Transformers runs them"},
    {"use_sonicmoe", "is not billed: experts are billed as Transformers runs them"},
    {"model_config", "is not read: the model is billed as its own config says"},
    {"overrides_of_model_config", "is not read: the model is billed as its own config says"},
    {"diffusion", "is not billed: the loss of the next token is"},
    {"lisa_n_layers", "is not billed: every layer is billed as it trains"},
    {"relora", "merges adapters now and then, which is not billed"},
    {"s2_attention", "is billed as attention over the whole sequence"},
    {"fp32_norms", "is not billed: norms are billed in the dtype of the model"},
    {"neftune_noise_alpha", "adds noise to the embedding's output: the noise is not billed"},
    {"use_onebitllms", "is not billed: linears are billed in 16 bits"},
    {"use_eaft", "copies the logits of the answers once more: the copy is not billed"},
    {"deepcompile", "is not billed: layers are billed as they run without"},
    {"resume_from_checkpoint", "reads the saved states beside the live ones while loading: not billed"},
    {"dpo_use_weighting", "weighs each token by the policy's own probabilities: the copies for it are not billed"},
    {"dpo_generate_during_eval", "lets the evaluation generate, which is not billed"},
    {"do_causal_lm_eval", "lets the evaluation generate, which is not billed"},
    {"do_bench_eval", "lets the evaluation run benchmarks, which is not billed"},
    {"flash_attn_cross_entropy", "is billed as the model's own loss"},
    {"fused_attn_kernel", "keeps fewer activations of attention: it is billed as the model's own code"},
    {"experts_implementation", "is not billed: experts are billed as Transformers runs them by default"},
    {"scaling_softmax", "is billed as attention without it"},
    {"gemma4_hybrid_attn_impl", "is billed as one kernel for all layers"},
    {"large_head_attention", "is billed as one kernel for all layers"},
    {"llama4_linearized_experts", "is not billed: experts are billed as the checkpoint stores them"},
    {"max_memory", "spreads the model over cards: it is billed on one"},
    {"gpu_memory_limit", "spreads the model over cards: it is billed on one"},
    {"use_dsv4_kernels", "is not billed: layers are billed as Transformers writes them"},
    {"use_glm_dsa_kernels", "is not billed: layers are billed as Transformers writes them"},
    {"nonexpert_quantization", "is not billed: what is no expert is billed as the checkpoint stores it"},
    {"dense_mixer", "runs every expert for every token, which is not billed"},
    {"kd_trainer", "keeps a teacher's log-probabilities, which is not billed"},
    {"use_mora", "is billed as LoRA of the same rank"}};

void state_what_is_left_out(KeyReader& reader, Draft& draft) {
  warn_of_left_out(kLeftOut, reader, draft);
  if (reader.count("eval_table_size").value_or(0) > 0)
    draft.warnings.push_back("eval_table_size lets the evaluation generate, which is not billed");
  const auto evaluated = reader.count("eval_sequence_len", 1), trained = reader.count("sequence_len", 1);
  if (evaluated && trained && *evaluated > *trained)
    draft.warnings.push_back("eval_sequence_len is not billed: rows of the evaluation are billed as long as others");
  reader.use("freeze_mm_modules"), reader.use("flash_attn_d512"), reader.use("lm_eval_post_train");
  if (reader.flag("tiled_mlp")) reader.use("tiled_mlp_num_shards");
  if (reader.flag("auto_find_batch_size"))
    draft.assume("auto_find_batch_size halves the batch when memory runs out: the first batch is billed");
}

// loaders/model.py _configure_embedding_dtypes: only flash's kernels, adapters and cut cross entropy bring them back to 16 bits.
void state_wide_embeddings(KeyReader& reader, Draft& draft) {
  const std::string kernel = plan_text(draft, "attention"), engine = plan_text(draft, "engine");
  const bool trains_whole = plan_text(draft, "method") == "full" && (engine.empty() || engine == "torch");
  if (reader.flag("embeddings_skip_upcast")) return;
  if (!trains_whole || draft.load_dtype == "fp32" || plan_text(draft, "loss") == "fused") return;
  if (kernel == "sdpa" || kernel == "eager")
    draft.warnings.push_back("axolotl trains embedding, head and norms in fp32 beside " + kernel +
                             " attention: they are billed in " + draft.load_dtype);
}

int claim(const JobSource& source) {
  if (!source.launch.program.empty() && source.launch.program.front() == "axolotl") return 100;
  if (source.arguments || source.keys.find("base_model") == nullptr) return 0;
  return count_keys(
             source.keys,
             "sequence_len micro_batch_size sample_packing adapter load_in_8bit load_in_4bit val_set_size datasets "
             "dataset_prepared_path gradient_accumulation_steps lora_r") >= 2
             ? 90
             : 0;
}

void read(const JobSource& source, Draft& draft) {
  KeyReader reader(source.keys, source.file, {axolotl_table()}, draft.problems);
  draft.model = reader.text("base_model");
  draft.model_key = "base_model";
  read_stage(reader, draft);
  read_precision(reader, draft);
  read_method(reader, draft);
  read_batch(reader, draft);
  read_saving(reader, draft);
  read_checkpointing(reader, draft);
  read_attention(reader, draft);
  read_packing(reader, draft);
  set_optimizer(reader.text("optimizer").value_or("adamw_torch_fused"), draft);
  if (const Value* arguments = reader.given("optim_args")) set_optimizer_arguments(*arguments, draft);
  read_low_rank(reader, draft);
  reader.use("optim_target_modules");
  draft.set("clip", Value::of(reader.real("max_grad_norm").value_or(0) > 0));
  const std::string compile = to_lower(reader.text("torch_compile").value_or("false"));
  draft.set("compile", Value::of(compile == "true"));
  read_loss(reader, draft);
  state_what_is_left_out(reader, draft);
  read_engine(reader, source, draft);
  state_wide_embeddings(reader, draft);
  if (reader.flag("load_in_4bit"))
    set_quant_storage(reader.text("bnb_config_kwargs.bnb_4bit_quant_storage").value_or("bfloat16"), draft);
  draft.add_records(reader);
}

}  // namespace

KeyTable axolotl_table() { return {kAxolotlKeys, kAxolotlHarmless, kSource}; }

Importer axolotl_importer() { return {"axolotl", "axolotl's YAML", kSource, claim, read}; }

}  // namespace membill::io
