// torchtune's YAML (tune run).
#include "base/text.h"
#include "io/importers/formats.h"
#include "io/importers/references.h"
#include "io/importers/torchtune_builders.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"model._component_", "", "model and method: lora_..., qlora_..."},
    {"model.lora_attn_modules", "", "attention modules that get an adapter"},
    {"model.apply_lora_to_mlp", "false", "the MLP's linears get one too"},
    {"model.apply_lora_to_output", "false", "the head gets one too"},
    {"model.lora_rank", "8", "rank of the adapters"},
    {"model.lora_alpha", "16", "scale of the adapters"},
    {"model.lora_dropout", "0.0", "dropout before the adapters"},
    {"model.use_dora", "false", "DoRA"},
    {"model.quantize_base", "false", "4-bit base"},
    {"dtype", "bf16", "weights, gradients and states"},
    {"batch_size", "", "micro-batch"},
    {"gradient_accumulation_steps", "1", "micro-batches of a step"},
    {"tokenizer.max_seq_len", "", "tokens of a sequence; absent: as long as the data"},
    {"dataset.max_seq_len", "", "tokens of a sequence, in recipes before torchtune 0.3"},
    {"dataset.packed", "false", "several samples share a sequence"},
    {"enable_activation_checkpointing", "false", "layers run their forward again in backward"},
    {"enable_activation_offloading", "false", "checkpoints live on the host"},
    {"ac_mode", "", "which layers are checkpointed"},
    {"ac_option", "", "every n-th layer, or a list of ops"},
    {"optimizer._component_", "", "optimizer"},
    {"optimizer.fused", "false", "fused step"},
    {"optimizer_in_bwd", "false", "each parameter is updated as soon as its gradient is there"},
    {"loss._component_", "", "how the loss takes the logits"},
    {"compile", "false", "torch.compile"},
    {"clip_grad_norm", "", "gradients are clipped by norm"},
    {"fsdp_cpu_offload", "false", "shards live on the host"},
    {"fsdp_reshard_after_forward", "true", "gathered weights are freed after the forward"},
    {"custom_sharded_layers", "", "units beside the layers"},
    {"tensor_parallel_dim", "1", "tensor parallel degree"},
    {"context_parallel_dim", "1", "context parallel degree"},
    {"data_parallel_replicate_dim", "1", "replicas"},
    {"data_parallel_shard_dim", "", "cards of a shard group"},
    {"enable_fp8_training", "false", "fp8 linears"},
    {"run_val_every_n_steps", "", "whether the job evaluates"},
    {"batch_size_val", "", "batch of the evaluation"},
    {"grpo_samples", "", "completions of a prompt"},
    {"ppo_epochs", "", "PPO"},
    {"kd_loss._component_", "", "distillation: which divergence from the teacher's logits"},
    {"teacher_model._component_", "", "distillation: the model that is learnt from"},
    {"quantizer", "", "quantisation-aware training, in the recipes that train"},
    {"use_flex", "", "flex attention over packed rows"},
};
constexpr std::string_view kHarmless =
    "output_dir tokenizer* checkpointer* seed device log_level resume_from_checkpoint metric_logger* log_* epochs "
    "max_steps_per_epoch "
    "profiler* dataset* dataset_val* shuffle lr_scheduler* save_* optimizer.* loss* quantizer.* enable_kv_cache "
    "low_cpu_ram collate_fn "
    "tensor_parallel_plan* fp8_recipe_name resize_token_embeddings cudnn_* model* base_model_path ref_checkpointer* "
    "kd_ratio kd_loss* teacher_model* "
    "teacher_checkpointer* optimizer_in_bwd_ num_* generation* use_distributed_state_dict name fsdp "
    "memory_efficient_fsdp_wrap "
    "top_k temperature tasks limit max_seq_length prompt max_new_tokens apply_chat_template dataloader* datasets* "
    "reward_* policy_* value_* ref_policy_* forward_batch_size max_generated_tokens gamma lmbda kl_coeff "
    "whiten_rewards "
    "min_response_length penalise_no_eos stop_token_ids ppo_batch_size orchestration* inference* postprocessing* "
    "training* debug_*";
constexpr std::string_view kSource = "pytorch/torchtune bd2a0fc: recipes/configs, recipes/*.py";

void read_lora(KeyReader& reader, Draft& draft) {
  LoraArguments lora;
  lora.rank = reader.count("model.lora_rank", 1);
  lora.alpha = reader.count("model.lora_alpha");
  lora.dropout = reader.real("model.lora_dropout");
  for (const std::string& module : reader.texts("model.lora_attn_modules"))
    lora.targets.push_back(module == "output_proj" ? "o_proj" : module);
  if (reader.flag("model.apply_lora_to_mlp")) {
    for (const char* name : {"gate_proj", "up_proj", "down_proj"}) lora.targets.emplace_back(name);
  }
  if (reader.flag("model.apply_lora_to_output")) lora.targets.emplace_back("lm_head");
  lora.dora = reader.flag("model.use_dora");
  set_lora(lora, draft);
  draft.set("adapter.dtype", Value::of(draft.load_dtype));
}

void read_model(KeyReader& reader, Draft& draft) {
  const std::optional<std::string> component = reader.text("model._component_");
  if (!component && draft.context.model) return draft.set("method", Value::of("full"));
  if (!component) return reader.problem("model._component_", "is missing", "torchtune.models.llama3_1.llama3_1_8b");
  std::string builder = component->substr(component->rfind('.') + 1);
  const bool quantized = builder.starts_with("qlora_") || reader.flag("model.quantize_base");
  const bool lora = quantized || builder.starts_with("lora_");
  for (const std::string_view prefix : {"qlora_", "lora_"}) {
    if (builder.starts_with(prefix)) builder.erase(0, prefix.size());
  }
  draft.model = torchtune_preset(builder);
  draft.model_key = "model._component_";
  draft.set("method", Value::of("full"));
  if (lora) read_lora(reader, draft);
  if (quantized) set_bits(4, "nf4", true, false, draft);
}

void read_precision(KeyReader& reader, Draft& draft) {
  const std::string dtype = dtype_word(reader.text("dtype").value_or("bf16"));
  draft.load_dtype = dtype == "fp16" || dtype == "fp32" ? dtype : "bf16";
  draft.own_precision = true;
  draft.set("weights", Value::of(draft.load_dtype));
  draft.set("precision", Value::of(draft.load_dtype == "fp32" ? std::string("fp32") : "pure-" + draft.load_dtype));
  if (reader.is_given("quantizer"))
    draft.warnings.push_back("quantizer: what fake quantisation keeps of weights and activations is not billed");
  if (reader.flag("enable_fp8_training")) draft.warnings.push_back("fp8 linears are billed as bf16 ones");
}

// Keys that only recipes of several cards have.
bool shards(KeyReader& reader) {
  const int own = count_keys(reader.map(),
                             "fsdp_cpu_offload fsdp_reshard_after_forward custom_sharded_layers tensor_parallel_dim "
                             "data_parallel_shard_dim data_parallel_replicate_dim memory_efficient_fsdp_wrap "
                             "use_distributed_state_dict fsdp_sharding_strategy");
  return own > 0;
}

void read_engine(const JobSource& source, KeyReader& reader, Draft& draft) {
  bool distributed = world_size(draft).value_or(1) > 1 || reader.count("tensor_parallel_dim", 1).value_or(1) > 1;
  if (!distributed && !world_size(draft) && shards(reader))
    draft.assume(draft.file + " is of a recipe for several cards and does not say how many: 1 taken, --gpus says it");
  for (const std::string& word : source.launch.program)
    distributed = distributed || word.find("_distributed") != std::string::npos;
  if (distributed && source.file.find("single_device") != std::string::npos && source.launch.program.empty()) {
    draft.assume("the file's name is that of a single-device recipe: each card trains by itself");
    distributed = false;
  }
  if (!distributed) return draft.set("engine", Value::of("torch"));
  draft.set("engine", Value::of("fsdp2"));
  draft.set("sharding.fsdp", Value::of(reader.flag("fsdp_reshard_after_forward") ? "full_shard" : "shard_grad_op"));
  draft.set("sharding.offload", Value::of(reader.flag("fsdp_cpu_offload") ? "optimizer+param" : "none"));
  draft.set("sharding.wrap", Value::of(reader.is_given("custom_sharded_layers") ? "block+embedding" : "block"));
  for (const auto& [key, plan] :
       {std::pair("tensor_parallel_dim", "parallel.tp"), std::pair("context_parallel_dim", "parallel.cp")}) {
    if (const auto degree = reader.count(key, 1); degree.value_or(1) > 1) draft.set(plan, degree);
  }
  const auto replicas = reader.count("data_parallel_replicate_dim", 1);
  if (replicas.value_or(1) <= 1 || !world_size(draft)) return;
  draft.set("sharding.fsdp", Value::of("hybrid_shard"));
  draft.set("sharding.shard_group", std::optional(*world_size(draft) / *replicas));
}

// Whether the job learns from a teacher.
bool read_teacher(KeyReader& reader, Draft& draft) {
  const std::optional<std::string> teacher = reader.text("teacher_model._component_");
  const std::string loss = to_lower(reader.text("kd_loss._component_").value_or(""));
  if (!teacher && loss.empty()) return false;
  if (!teacher) {
    reader.problem("teacher_model._component_", "is missing", "torchtune.models.llama3_1.llama3_1_8b");
    return true;
  }
  if (!draft.is_given("teacher"))
    draft.set("teacher", Value::of(torchtune_preset(teacher->substr(teacher->rfind('.') + 1))));
  for (const char* way : {"reverse", "symmetric"})
    if (loss.find(std::string(way) + "kl") != std::string::npos) draft.set("stage_args.kd_loss", Value::of(way));
  return true;
}

void read_stage(const JobSource& source, KeyReader& reader, Draft& draft) {
  std::string stage = "sft";
  for (const std::string& word : source.launch.program) {
    if (word.find("dpo") != std::string::npos) stage = "dpo";
  }
  const std::string loss = to_lower(reader.text("loss._component_").value_or(""));
  if (loss.find("dpoloss") != std::string::npos || loss.find("rso") != std::string::npos) stage = "dpo";
  if (read_teacher(reader, draft)) stage = "distill";
  draft.set("stage", Value::of(stage));
  if (loss.ends_with(".crossentropyloss")) draft.set("loss", Value::of("native"));
}

void read_step(KeyReader& reader, Draft& draft) {
  draft.set("batch", reader.count("batch_size", 1));
  draft.set("accumulate", reader.count("gradient_accumulation_steps", 1));
  const auto of_dataset = reader.count("dataset.max_seq_len", 1);
  if (const auto length = reader.count("tokenizer.max_seq_len", 1); length || of_dataset) {
    draft.set("seq", length ? length : of_dataset);
  } else {
    draft.assume("tokenizer.max_seq_len does not cut: 2048 tokens taken, --seq says it");
  }
  const bool packed = reader.flag("dataset.packed");
  draft.set("packing", Value::of(packed));
  if (!packed) draft.set("lengths", Value::of("varied"));
  const bool checkpoints = reader.flag("enable_activation_checkpointing");
  draft.set("checkpointing", Value::of(checkpoints ? "full" : "none"));
  if (reader.flag("enable_activation_offloading")) {
    if (!checkpoints)
      reader.problem("enable_activation_offloading", "stops the recipe without checkpoints",
                     "enable_activation_checkpointing true");
    draft.set("checkpointing.offload", Value::of(true));
  }
  if (reader.text("ac_mode") == "selective") {
    const auto every = reader.text("ac_option");
    const Value number = every ? flag_value(*every) : Value();
    draft.set("checkpointing", Value::of("full"));
    if (number.is_int() && number.as_int() > 0) draft.set("checkpointing.every", number);
  }
  if (const auto name = reader.text("optimizer._component_")) set_optimizer(*name, draft);
  if (reader.flag("optimizer.fused") && plan_text(draft, "optimizer") == "adamw")
    draft.set("optimizer_impl", Value::of("fused"));
  draft.set("optimizer_in_backward", Value::of(reader.flag("optimizer_in_bwd")));
  // The DPO recipes of adapters do not clip.
  const bool clips = plan_text(draft, "stage") != "dpo" || plan_text(draft, "method") == "full";
  draft.set("clip", Value::of(clips && reader.is_given("clip_grad_norm") && reader.text("clip_grad_norm") != "false"));
  const Value* compile = reader.given("compile");
  draft.set("compile", Value::of(compile != nullptr && (compile->is_map() || reader.flag("compile"))));
  if (reader.count("run_val_every_n_steps", 1)) draft.set("evaluation.batch", reader.count("batch_size_val", 1));
}

int claim(const JobSource& source) {
  if (!source.launch.program.empty() && source.launch.program.front() == "tune") return 100;
  const Value* model = source.keys.find("model");
  const Value* component = model == nullptr || !model->is_map() ? nullptr : model->find("_component_");
  if (component != nullptr) return 100;
  return count_keys(source.keys,
                    "policy_model tokenizer checkpointer enable_activation_checkpointing recipe_checkpoint") >= 3
             ? 90
             : 0;
}

// Whether the job trains nothing, or is one of reinforcement learning: it is refused as a whole.
bool is_refused(KeyReader& reader) {
  if (reader.map().find("checkpointer") != nullptr && reader.map().find("optimizer") == nullptr) {
    reader.problem("optimizer", "is missing: recipes without one evaluate, generate or quantise, and train nothing");
    return true;
  }
  for (const char* key : {"grpo_samples", "ppo_epochs"}) {
    if (!reader.is_given(key)) continue;
    reader.problem(key, "trains on what it generates, which is not billed");
    return true;
  }
  return false;
}

void read(const JobSource& source, Draft& draft) {
  const Value keys = with_references(source.keys, source.launch);
  KeyReader reader(keys, source.file, {torchtune_table()}, draft.problems);
  if (is_refused(reader)) return draft.add_records(reader);
  draft.set("implementation", Value::of("torchtune"));
  draft.set("loop", Value::of("plain"));
  read_precision(reader, draft);
  read_model(reader, draft);
  read_stage(source, reader, draft);
  read_step(reader, draft);
  read_engine(source, reader, draft);
  draft.add_records(reader);
}

}  // namespace

KeyTable torchtune_table() { return {kRows, kHarmless, kSource}; }

Importer torchtune_importer() { return {"torchtune", "torchtune's YAML", kSource, claim, read}; }

}  // namespace membill::io
