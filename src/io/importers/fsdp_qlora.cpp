// answer.ai's train.py of fsdp_qlora: FSDP1 over a frozen 4-bit base, without Hugging Face's Trainer.
#include "base/text.h"
#include "io/importers/formats.h"
#include "io/importers/launch_programs.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"model_name", "meta-llama/Llama-2-7b-hf", "model"},
    {"world_size", "-1", "cards in all; -1: all there are"},
    {"train_type", "qlora", "which parameters train, over which base"},
    {"batch_size", "1", "micro-batch"},
    {"context_length", "512", "tokens of a sequence"},
    {"gradient_accumulation_steps", "1", "micro-batches of a step"},
    {"dataset", "alpaca_sample", "dummy: rows of one length"},
    {"sharding_strategy", "full_shard", "what is sharded"},
    {"use_gradient_checkpointing", "true", "layers run their forward again in backward"},
    {"reentrant_checkpointing", "false", "reentrant checkpointing"},
    {"use_cpu_offload", "true", "shards live on the host"},
    {"use_activation_cpu_offload", "false", "checkpoints live on the host"},
    {"no_sync", "false", "gradients stay whole between the micro-batches"},
    {"precision", "bf16", "weights and autocast"},
    {"save_model", "false", "the whole model is saved"},
    {"lora_rank", "64", "rank of the adapters"},
    {"lora_alpha", "16", "scale of the adapters"},
    {"lora_dropout", "0.1", "dropout before the adapters"},
    {"lora_target_modules", "all", "modules that get an adapter; default: PEFT's"},
    {"apply_gradient_clipping", "false", "gradients are clipped by norm"},
    {"optimizer", "adamw", "optimizer"},
    {"use_ddp", "false", "whole weights on every card"},
};
constexpr std::string_view kHarmless =
    "llama_pro_path num_epochs dataset_samples low_memory output_dir verbose lr grad_norm wd profile* "
    "lr_scheduler loading_workers log_to master_addr master_port seed project_name name group entity n_bits "
    "overwrite_profiling_output with_stack with_shapes export_* wait_steps warmup_steps active_steps repeat max_steps "
    "wrapping_policy";
constexpr std::string_view kSource = "AnswerDotAI/fsdp_qlora: train.py";

int claim(const JobSource& source) {
  const bool train = !source.launch.program.empty() && base_name(source.launch.program.front()) == "train.py";
  if (!source.arguments || !train || source.keys.find("train_type") == nullptr) return 0;
  return count_keys(source.keys, "context_length use_cpu_offload use_ddp sharding_strategy apply_gradient_clipping") > 0
             ? 90
             : 0;
}

void read_base(const std::string& type, KeyReader& reader, Draft& draft) {
  const std::string precision = reader.text("precision").value_or("bf16");
  const bool wide = precision == "fp32" || precision.find("autocast") != std::string::npos;
  draft.own_precision = true;
  draft.load_dtype = wide ? "fp32" : "bf16";
  draft.set("weights", Value::of(draft.load_dtype));
  draft.set("precision", Value::of(!wide                         ? "pure-bf16"
                                   : precision == "fp32"         ? "fp32"
                                   : precision.starts_with("bf") ? "amp-bf16"
                                                                 : "amp-fp16"));
  if (type.starts_with("hqq")) {
    draft.quantized = true;
    draft.set("weights", Value::of("hqq-int4"));
    draft.set("kbit_prepare", Value::of(false));
  } else if (type != "lora" && type != "custom_lora" && type != "full") {
    set_bits(4, "nf4", true, false, draft);
  }
}

void read_method(const std::string& type, KeyReader& reader, Draft& draft) {
  draft.set("method", Value::of("full"));
  if (type == "full") return;
  if (type.find("llama_pro") != std::string::npos)
    return reader.problem("train_type", membill::quoted(type) + " trains added blocks, which is not billed", "qlora");
  LoraArguments lora;
  lora.rank = reader.count("lora_rank", 1);
  lora.alpha = reader.count("lora_alpha");
  lora.dropout = reader.real("lora_dropout");
  lora.dora = type.ends_with("dora");
  if (to_lower(reader.text("lora_target_modules").value_or("all")) == "all")
    lora.targets = {"k_proj", "q_proj", "v_proj", "up_proj", "down_proj", "gate_proj"};
  set_lora(lora, draft);
  draft.set("adapter.dtype", Value::of(draft.load_dtype));
}

void read_engine(KeyReader& reader, Draft& draft) {
  std::string strategy = to_lower(reader.text("sharding_strategy").value_or("full_shard"));
  const bool ddp = strategy == "ddp" || reader.flag("use_ddp");
  if (strategy.starts_with("hybrid")) strategy = "hybrid_shard";
  const bool offloads = reader.flag("use_cpu_offload");
  draft.set("engine", Value::of("fsdp"));
  draft.set("sharding.fsdp", Value::of(ddp ? std::string("no_shard") : strategy));
  draft.set("sharding.wrap", Value::of("block"));
  draft.set("sharding.use_orig_params", Value::of(false));
  draft.set("sharding.limit_all_gathers", Value::of(true));
  draft.set("sharding.offload", Value::of(offloads ? "optimizer+param" : "none"));
  const bool several = reader.count("gradient_accumulation_steps", 1).value_or(1) > 1;
  draft.set("sharding.no_sync", Value::of(several && (offloads || reader.flag("no_sync"))));
  set_quant_storage(draft.load_dtype, draft);
}

void read_step(KeyReader& reader, Draft& draft) {
  draft.set("batch", reader.count("batch_size", 1));
  draft.set("seq", reader.count("context_length", 1));
  draft.set("accumulate", reader.count("gradient_accumulation_steps", 1));
  if (reader.text("dataset") != "dummy") draft.set("lengths", Value::of("varied"));
  const bool checkpoints = reader.flag("use_gradient_checkpointing");
  draft.set("checkpointing", Value::of(checkpoints ? "full" : "none"));
  if (checkpoints) {
    draft.set("checkpointing.reentrant", Value::of(reader.flag("reentrant_checkpointing")));
    if (reader.flag("use_activation_cpu_offload")) draft.set("checkpointing.offload", Value::of(true));
  }
  set_optimizer(to_lower(reader.text("optimizer").value_or("adamw")), draft);
  draft.set("optimizer_impl", Value::of("foreach"));
  draft.set("clip", Value::of(reader.flag("apply_gradient_clipping")));
  draft.set("attention", Value::of("sdpa"));
  draft.set("loop", Value::of("plain"));
}

void read(const JobSource& source, Draft& draft) {
  KeyReader reader(source.keys, source.file, {{kRows, kHarmless, kSource}}, draft.problems);
  draft.model = reader.text("model_name");
  draft.model_key = "model_name";
  if (const auto cards = reader.count("world_size", -1); cards.value_or(0) > 0 && !draft.processes)
    draft.processes = cards;
  const std::string type = to_lower(reader.text("train_type").value_or("qlora"));
  draft.set("stage", Value::of("sft"));
  read_base(type, reader, draft);
  read_method(type, reader, draft);
  read_engine(reader, draft);
  read_step(reader, draft);
  draft.saves = reader.flag("save_model");
  draft.add_records(reader);
}

}  // namespace

Importer fsdp_qlora_importer() { return {"fsdp-qlora", "answer.ai's script of FSDP and QLoRA", kSource, claim, read}; }

}  // namespace membill::io
