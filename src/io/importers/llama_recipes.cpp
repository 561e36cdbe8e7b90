// Meta's llama-recipes (llama-cookbook): torchrun finetuning.py --enable_fsdp --use_peft ..., a loop of its own.
#include <algorithm>

#include "base/text.h"
#include "io/importers/formats.h"
#include "io/importers/launch_programs.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"model_name", "", "model", {}, "configs/training.py"},
    {"enable_fsdp", "false", "FSDP", {}, "configs/training.py"},
    {"batch_size_training", "4", "micro-batch", {}, "configs/training.py"},
    {"micro_batch_size", "", "", "batch_size_training"},
    {"batching_strategy", "packing", "packing or padding", {}, "configs/training.py"},
    {"context_length", "4096", "tokens of a packed sequence", {}, "configs/training.py"},
    {"gradient_accumulation_steps", "1", "micro-batches of a step", {}, "configs/training.py"},
    {"gradient_clipping", "false", "gradients are clipped by norm", {}, "configs/training.py"},
    {"use_fp16", "false", "fp16 with a gradient scaler", {}, "configs/training.py"},
    {"fsdp_config.use_fp16", "", "", "use_fp16"},
    {"use_peft", "false", "adapters train", {}, "configs/training.py"},
    {"peft_method", "lora", "which adapters", {}, "configs/training.py"},
    {"freeze_layers", "false", "the first layers do not train", {}, "configs/training.py"},
    {"num_freeze_layers", "1", "how many of them", {}, "configs/training.py"},
    {"quantization", "", "4bit or 8bit", {}, "configs/training.py"},
    {"lora_config.r", "8", "rank of the adapters", {}, "configs/peft.py"},
    {"r", "", "", "lora_config.r"},
    {"lora_config.lora_alpha", "32", "scale of the adapters", {}, "configs/peft.py"},
    {"lora_alpha", "", "", "lora_config.lora_alpha"},
    {"lora_config.target_modules", "q_proj,v_proj", "modules that get an adapter", {}, "configs/peft.py"},
    {"target_modules", "", "", "lora_config.target_modules"},
    {"lora_config.lora_dropout", "0.05", "dropout before the adapters", {}, "configs/peft.py"},
    {"lora_dropout", "", "", "lora_config.lora_dropout"},
    {"fsdp_config.pure_bf16", "false", "all weights in bf16", {}, "configs/fsdp.py"},
    {"pure_bf16", "", "", "fsdp_config.pure_bf16"},
    {"fsdp_config.optimizer", "AdamW", "AdamW or anyprecision", {}, "configs/fsdp.py"},
    {"optimizer", "", "", "fsdp_config.optimizer"},
    {"fsdp_config.sharding_strategy", "FULL_SHARD", "FSDP's strategy", {}, "configs/fsdp.py"},
    {"sharding_strategy", "", "", "fsdp_config.sharding_strategy"},
    {"fsdp_config.hsdp", "false", "shards within a group of cards, copies across", {}, "configs/fsdp.py"},
    {"hsdp", "", "", "fsdp_config.hsdp"},
    {"fsdp_config.sharding_group_size", "0", "cards of a group", {}, "configs/fsdp.py"},
    {"sharding_group_size", "", "", "fsdp_config.sharding_group_size"},
    {"fsdp_config.fsdp_activation_checkpointing", "true", "layers run their forward again in backward"},
    {"fsdp_activation_checkpointing", "", "", "fsdp_config.fsdp_activation_checkpointing"},
    {"fsdp_config.fsdp_cpu_offload", "false", "weights, gradients and states live on the host"},
    {"fsdp_cpu_offload", "", "", "fsdp_config.fsdp_cpu_offload"},
};
constexpr std::string_view kHarmless =
    "low_cpu_fsdp run_validation gradient_clipping_threshold num_epochs max_train_step max_eval_step "
    "num_workers_dataloader lr weight_decay gamma seed mixed_precision fsdp_config.mixed_precision val_batch_size "
    "dataset output_dir one_gpu save_model dist_checkpoint_* save_optimizer use_fast_kernels use_wandb save_metrics "
    "flop_counter* use_profiler profiler_dir from_peft_checkpoint tokenizer_name replica_group_size "
    "fsdp_config.replica_group_size checkpoint_type fsdp_config.checkpoint_type custom_dataset.* samsum_dataset.* "
    "alpaca_dataset.* lora_config.bias lora_config.task_type lora_config.inference_mode wandb_config.*";
constexpr std::string_view kSource = "meta-llama/llama-recipes: src/llama_recipes";

std::string lowered(KeyReader& reader, std::string_view key) { return to_lower(reader.text(key).value_or("")); }

// configs/quantization.py: NF4 with double quantisation, stored in bf16.
void read_quantization(KeyReader& reader, bool sharded, Draft& draft) {
  const std::string bits = lowered(reader, "quantization");
  if (bits.empty() || bits == "false" || bits == "none") return;
  set_bits(bits.starts_with("4") ? 4 : 8, "nf4", true, !sharded, draft);
}

void read_method(KeyReader& reader, Draft& draft) {
  draft.set("method", Value::of("full"));
  if (!reader.flag("use_peft")) {
    if (reader.flag("freeze_layers"))
      draft.warnings.push_back("freeze_layers: the first layers are billed as if they trained");
    reader.use("num_freeze_layers");
    return;
  }
  if (const std::string method = lowered(reader, "peft_method"); method != "lora")
    return reader.problem("peft_method", quoted(method) + " is not billed", "lora");
  LoraArguments lora;
  lora.rank = reader.count("lora_config.r", 1);
  lora.alpha = reader.count("lora_config.lora_alpha");
  lora.dropout = reader.real("lora_config.lora_dropout");
  lora.targets = reader.texts("lora_config.target_modules");
  set_lora(lora, draft);
}

void read_sharding(KeyReader& reader, Draft& draft) {
  std::string strategy = lowered(reader, "fsdp_config.sharding_strategy");
  strategy = strategy.substr(strategy.rfind('.') == std::string::npos ? 0 : strategy.rfind('.') + 1);
  const bool hybrid = reader.flag("fsdp_config.hsdp") || strategy.starts_with("hybrid");
  draft.set("engine", Value::of("fsdp"));
  draft.set("sharding.fsdp", Value::of(hybrid ? "hybrid_shard" : strategy));
  if (const auto group = reader.count("fsdp_config.sharding_group_size"); hybrid && group.value_or(0) > 0)
    draft.set("sharding.shard_group", group);
  draft.set("sharding.wrap", Value::of("block"));
  const bool offload = reader.flag("fsdp_config.fsdp_cpu_offload");
  draft.set("sharding.offload", Value::of(offload ? "optimizer+param" : "none"));
  const bool checkpoints = reader.flag("fsdp_config.fsdp_activation_checkpointing");
  draft.set("checkpointing", Value::of(checkpoints ? "full" : "none"));
  if (checkpoints) draft.set("checkpointing.reentrant", Value::of(false));
}

void read_precision(KeyReader& reader, Draft& draft) {
  const bool half = reader.flag("use_fp16");
  reader.use("fsdp_config.pure_bf16");  // the weights are loaded in bf16 anyhow
  draft.own_precision = true;
  draft.load_dtype = half ? "fp16" : "bf16";
  if (!draft.quantized) draft.set("weights", Value::of(draft.load_dtype));
  draft.set("precision", Value::of(half ? "amp-fp16" : "pure-bf16"));
}

int claim(const JobSource& source) {
  const bool named = !source.launch.program.empty() && source.launch.program.front().find("finetuning") == 0;
  const bool module = !source.launch.program.empty() && (source.launch.program.front() == "llama_recipes.finetuning" ||
                                                         source.launch.program.front() == "llama_cookbook.finetuning");
  const int own = count_keys(source.keys,
                             "enable_fsdp batch_size_training peft_method batching_strategy dist_checkpoint_folder "
                             "dist_checkpoint_root_folder use_fast_kernels fsdp_config.pure_bf16 low_cpu_fsdp");
  return module ? 100 : own > 0 && source.keys.find("model_name") != nullptr && (named || own > 1) ? 95 : 0;
}

void read(const JobSource& source, Draft& draft) {
  KeyReader reader(source.keys, source.file, {{kRows, kHarmless, kSource}}, draft.problems);
  draft.model = reader.text("model_name");
  draft.model_key = "model_name";
  const bool sharded = reader.flag("enable_fsdp");
  draft.set("loop", Value::of("plain"));
  draft.set("batch", reader.count("batch_size_training", 1));
  draft.set("accumulate", reader.count("gradient_accumulation_steps", 1));
  draft.set("clip", Value::of(reader.flag("gradient_clipping")));
  const bool packing = lowered(reader, "batching_strategy") == "packing";
  draft.set("packing", Value::of(packing));
  draft.set("seq", reader.count("context_length", 1));
  if (!packing) draft.set("lengths", Value::of("varied"));
  read_method(reader, draft);
  read_quantization(reader, sharded, draft);
  const bool narrow = lowered(reader, "fsdp_config.optimizer") == "anyprecision";
  set_optimizer("adamw_torch", draft);
  if (narrow && sharded) draft.set("moment_dtype", Value::of("bf16"));
  if (sharded) read_sharding(reader, draft);
  read_precision(reader, draft);
  set_quant_storage("bfloat16", draft);
  draft.add_records(reader);
}

}  // namespace

KeyTable llama_recipes_table() { return {kRows, kHarmless, kSource}; }

Importer llama_recipes_importer() {
  return {"llama-recipes", "arguments of llama-recipes' finetuning.py", kSource, claim, read};
}

}  // namespace membill::io
