#include "io/importers/llamafactory_v1.h"

#include <algorithm>

#include "base/text.h"
#include "io/importers/deepspeed.h"
#include "io/importers/parts.h"
#include "io/importers/training_arguments.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"model", "Qwen/Qwen3-4B-Instruct-2507", "model", {}, "model_args.py"},
    {"model_class", "llm", "class of the model", {}, "model_args.py"},
    {"flash_attn", "sdpa", "attention kernel", {}, "model_args.py"},
    {"peft_config.name", "", "which parameters train; absent: all", {}, "../plugins/model_plugins/peft.py"},
    {"peft_config.r", "8", "rank of the adapters", {}, "../plugins/model_plugins/peft.py"},
    {"peft_config.lora_alpha", "16", "scale of the adapters", {}, "../plugins/model_plugins/peft.py"},
    {"peft_config.lora_dropout", "0.05", "dropout before the adapters", {}, "../plugins/model_plugins/peft.py"},
    {"peft_config.target_modules", "all", "modules that get an adapter", {}, "../plugins/model_plugins/peft.py"},
    {"peft_config.modules_to_save", "", "modules that train whole"},
    {"peft_config.use_dora", "false", "DoRA", {}, "../plugins/model_plugins/peft.py"},
    {"peft_config.freeze_trainable_layers", "2", "last layers that train", {}, "../plugins/model_plugins/peft.py"},
    {"peft_config.freeze_trainable_modules", "", "modules of those layers that train"},
    {"peft_config.freeze_extra_modules", "", "further modules that train"},
    {"peft_config.cast_trainable_params_to_fp32",
     "true",
     "what trains is cast to fp32",
     {},
     "../plugins/model_plugins/peft.py"},
    {"peft_config.export_dir", "", "a merge, which trains nothing"},
    {"kernel_config.name", "", "whose kernels"},
    {"quant_config.name", "", "who stores the base"},
    {"quant_config.quantization_bit",
     "4",
     "bits of the base's weights",
     {},
     "../plugins/model_plugins/quantization.py"},
    {"quant_config.double_quantization",
     "true",
     "the scales are quantised too",
     {},
     "../plugins/model_plugins/quantization.py"},
    {"quant_config.compute_dtype",
     "float16",
     "dtype that holds the packed weights too",
     {},
     "../plugins/model_plugins/quantization.py"},
    {"quant_config.bnb_4bit_quant_storage", "", "dtype that holds the packed weights"},
    {"quant_config.quantization_type", "nf4", "4-bit format", {}, "../plugins/model_plugins/quantization.py"},
    {"dist_config.name", "", "fsdp2 or deepspeed; absent: DDP"},
    {"dist_config.config_file", "", "DeepSpeed's configuration"},
    {"dist_config.reshard_after_forward", "true", "gathered weights are freed after the forward"},
    {"dist_config.offload_params", "false", "weights, gradients and states live on the host"},
    {"dist_config.pin_memory", "true", "offloaded shards are page-locked"},
    {"dist_config.cp_size", "1", "Ulysses degree"},
    {"micro_batch_size", "1", "micro-batch"},
    {"global_batch_size", "", "sequences of a step on all cards"},
    {"cutoff_len", "2048", "tokens of a sequence"},
    {"bf16", "true", "FSDP gathers weights in bf16"},
    {"batching_strategy", "normal", "how samples are joined"},
    {"enable_activation_checkpointing", "true", "layers run their forward again in backward"},
    {"optim_config.name", "", "optimizer; absent: torch's AdamW"},
    {"save_steps", "", "whether checkpoints are saved"},
    {"save_epochs", "", "whether checkpoints are saved"},
    {"save_ckpt_as_hf", "false", "a checkpoint holds the whole state"},
    {"init_config.name", "", "who loads the weights"},
};

constexpr std::string_view kHarmless =
    "template trust_remote_code train_dataset eval_dataset output_dir learning_rate num_train_epochs max_steps "
    "max_grad_norm batching_workers lr_scheduler_config* optim_config* seed full_determinism resume_from_checkpoint "
    "save_total_limit logging_steps sample_backend max_new_tokens kernel_config.* dist_config.dcp_path "
    "dist_config.cp_mode dist_config.num_nodes dist_config.mp_* peft_config.adapter_name_or_path "
    "peft_config.use_rslora peft_config.export_size peft_config.infer_dtype quant_config.* init_config* peft_config "
    "kernel_config quant_config dist_config temperature top_p top_k";
constexpr std::string_view kSource = "hiyouga/LLaMA-Factory 0.9.5: src/llamafactory/v1/config/training_args.py";

void read_lora(KeyReader& reader, Draft& draft) {
  LoraArguments lora;
  lora.rank = reader.count("peft_config.r", 1);
  lora.alpha = reader.count("peft_config.lora_alpha");
  lora.dropout = reader.real("peft_config.lora_dropout");
  lora.targets = read_targets(reader, "peft_config.target_modules");
  if (lora.targets.empty()) lora.targets = {"all-linear"};
  lora.modules_to_save = reader.texts("peft_config.modules_to_save");
  lora.dora = reader.flag("peft_config.use_dora");
  set_lora(lora, draft);
}

void read_frozen(KeyReader& reader, Draft& draft) {
  draft.set("method", Value::of("freeze"));
  draft.set("freeze.trainable_layers", reader.count("peft_config.freeze_trainable_layers", 0));
  if (const std::vector<std::string> extra = reader.texts("peft_config.freeze_extra_modules"); !extra.empty())
    draft.set("freeze.trainable_modules", texts_value(extra));
  if (const auto names = reader.text("peft_config.freeze_trainable_modules"); names && *names != "all")
    draft.warnings.push_back("freeze_trainable_modules " + *names + " is not billed: the whole of the last layers is");
  if (!reader.flag("peft_config.cast_trainable_params_to_fp32")) return;
  draft.set("gradient_dtype", Value::of("fp32"));
  draft.set("moment_dtype", Value::of("fp32"));
  draft.assume(
      "the layers that train are cast to fp32: their gradients and moments are billed so, their weights in the dtype "
      "of the base");
}

void read_method(KeyReader& reader, Draft& draft) {
  const std::string name = to_lower(reader.text("peft_config.name").value_or("full"));
  if (reader.is_given("peft_config.export_dir"))
    return reader.problem("peft_config.export_dir", "merges an adapter, which trains nothing");
  if (name == "lora") {
    read_lora(reader, draft);
  } else if (name == "freeze") {
    read_frozen(reader, draft);
  } else if (name == "full") {
    draft.set("method", Value::of("full"));
  } else {
    reader.problem("peft_config.name", quoted(name) + " is not billed", "lora, freeze, or none of it");
  }
  if (!reader.is_given("quant_config.name")) return;
  const std::int64_t bits = reader.count("quant_config.quantization_bit", 4).value_or(4);
  set_bits(bits, reader.text("quant_config.quantization_type").value_or("nf4"),
           reader.flag("quant_config.double_quantization"), false, draft);
}

void read_stage(const JobSource& source, Draft& draft) {
  const auto& program = source.launch.program;
  draft.set("stage", Value::of("sft"));
  if (program.size() > 1 && (program[1] == "dpo" || program[1] == "rm"))
    draft.problems.add({draft.file, "stage", "v1's " + program[1] + " is not billed", "sft"});
}

void read_step(KeyReader& reader, Draft& draft) {
  const std::int64_t batch = reader.count("micro_batch_size", 1).value_or(1);
  const std::int64_t sp = reader.count("dist_config.cp_size", 1).value_or(1);
  const std::int64_t replicas =
      std::max<std::int64_t>(1, world_size(draft).value_or(1) / std::max<std::int64_t>(1, sp));
  draft.set("batch", std::optional(batch));
  draft.set("seq", reader.count("cutoff_len", 1));
  if (const auto whole = reader.count("global_batch_size", 1))
    draft.set("accumulate", std::optional(std::max<std::int64_t>(1, *whole / replicas / batch)));
  const std::string batching = to_lower(reader.text("batching_strategy").value_or("normal"));
  const bool joined = batching.find("padding_free") != std::string::npos;
  draft.set("packing", Value::of(false));
  draft.set("padding_free", Value::of(joined));
  if (!joined) set_padded(draft);
  if (batching == "dynamic_batching")
    draft.assume("dynamic_batching fills micro_batch_size x cutoff_len tokens: rows of cutoff_len taken");
  const bool checkpoints = reader.flag("enable_activation_checkpointing");
  draft.set("checkpointing", Value::of(checkpoints ? "full" : "none"));
  if (checkpoints) draft.set("checkpointing.reentrant", Value::of(false));
  draft.set("clip", Value::of(true));
  draft.set("loop", Value::of("plain"));
  set_optimizer(reader.text("optim_config.name").value_or("adamw"), draft);
  if (plan_text(draft, "optimizer") == "adamw") draft.set("optimizer_impl", Value::of("foreach"));
}

void read_code(KeyReader& reader, Draft& draft) {
  set_attention(reader.text("flash_attn").value_or("sdpa"), "flash_attn", draft);
  const std::string kernels = to_lower(reader.text("kernel_config.name").value_or(""));
  if (kernels == "liger_kernel") {
    draft.set("implementation", Value::of("liger"));
    draft.set("liger.cross_entropy", Value::of(false));  // the trainer asks for the logits
  } else if (!kernels.empty() && find_model(draft).experts > 0) {
    draft.warnings.push_back("kernel_config: its fused experts are billed as Transformers runs them");
  }
  if (reader.text("model_class").value_or("llm") != "llm")
    draft.warnings.push_back("model_class " + reader.text("model_class").value_or("") +
                             ": the language model alone is billed");
  draft.warnings.push_back(
      "v1's loss takes the logits once more beside the model's own: some twelve bytes of each logit are not billed");
}

void read_saving(KeyReader& reader, Draft& draft) {
  draft.saves = reader.is_given("save_steps") || reader.is_given("save_epochs");
  draft.saves_shards = !reader.flag("save_ckpt_as_hf");
}

void read_fsdp2(KeyReader& reader, Draft& draft) {
  draft.set("engine", Value::of("fsdp2"));
  draft.set("sharding.fsdp",
            Value::of(reader.flag("dist_config.reshard_after_forward") ? "full_shard" : "shard_grad_op"));
  const bool offload = reader.flag("dist_config.offload_params");
  draft.set("sharding.offload", Value::of(offload ? "optimizer+param" : "none"));
  if (offload) draft.set("sharding.pin_memory", Value::of(reader.flag("dist_config.pin_memory")));
  draft.set("sharding.wrap", Value::of("block"));
  draft.set("sharding.param_dtype", Value::of(reader.flag("bf16") ? "bf16" : "fp32"));
  draft.set("sharding.reduce_dtype", Value::of("fp32"));
}

void read_engine(KeyReader& reader, Draft& draft) {
  const std::string name = to_lower(reader.text("dist_config.name").value_or(""));
  const bool bf16 = reader.flag("bf16");
  if (name == "deepspeed") {
    const Value* config = reader.given("dist_config.config_file");
    if (config == nullptr) return reader.problem("dist_config.config_file", "is missing");
    draft.bf16 = bf16;
    read_deepspeed_argument(*config, "dist_config.config_file", {bf16, false}, draft);
  } else if (name == "fsdp2") {
    read_fsdp2(reader, draft);
  } else if (!name.empty()) {
    reader.problem("dist_config.name", quoted(name) + " is not billed", "fsdp2 or deepspeed");
  }
  if (const auto sp = reader.count("dist_config.cp_size", 1); sp.value_or(1) > 1) draft.set("parallel.ulysses", sp);
}

}  // namespace

KeyTable llamafactory_v1_table() { return {kRows, kHarmless, kSource}; }

bool runs_on_v1(const JobSource& source) {
  if (source.keys.find("model_name_or_path") != nullptr || source.keys.find("finetuning_type") != nullptr) return false;
  const std::string* use = source.launch.environment.find("USE_V1");
  if (use != nullptr && as_flag(Value::of(*use)) == true) return true;
  int sections = count_keys(source.keys, "model_class train_dataset batching_strategy");
  for (const char* key : {"peft_config", "kernel_config", "dist_config", "quant_config", "init_config"}) {
    const Value* section = source.keys.find(key);
    sections += section != nullptr && section->is_map() && section->find("name") != nullptr ? 1 : 0;
  }
  const Value* peft = source.keys.find("peft_config");
  const bool merges = peft != nullptr && peft->is_map() && peft->find("export_dir") != nullptr;
  return source.keys.find("model") != nullptr && (sections >= 2 || merges);
}

void read_llamafactory_v1(const JobSource& source, Draft& draft) {
  KeyReader reader(source.keys, source.file, {llamafactory_v1_table()}, draft.problems);
  draft.model = reader.text("model");
  count_local_cards(source.launch, draft);
  read_stage(source, draft);
  read_method(reader, draft);
  read_step(reader, draft);
  read_code(reader, draft);
  read_engine(reader, draft);
  read_saving(reader, draft);
  const auto storage = reader.text("quant_config.bnb_4bit_quant_storage");
  set_quant_storage(storage ? *storage : reader.text("quant_config.compute_dtype").value_or("float16"), draft);
  reader.use("init_config.name");
  draft.add_records(reader);
}

}  // namespace membill::io
