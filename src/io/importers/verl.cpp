// verl's supervised fine-tuning: its YAML, and the overrides of its command line (torchrun -m verl.trainer.fsdp_sft_trainer a.b=c).
#include <algorithm>

#include "base/text.h"
#include "io/importers/formats.h"
#include "io/importers/sequence_ranks.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"model.partial_pretrain", "", "model"},
    {"model.path", "", "", "model.partial_pretrain"},
    {"data.micro_batch_size_per_gpu", "4", "micro-batch"},
    {"data.micro_batch_size", "", "", "data.micro_batch_size_per_gpu"},
    {"data.train_batch_size", "256", "sequences of a step on all cards"},
    {"data.max_length", "1024", "tokens of a sequence"},
    {"data.use_dynamic_bsz", "false", "micro-batches are filled up to a number of tokens"},
    {"data.max_token_len_per_gpu", "8192", "tokens of such a micro-batch"},
    {"model.fsdp_config.model_dtype", "fp32", "dtype of the shards"},
    {"engine.model_dtype", "", "", "model.fsdp_config.model_dtype"},
    {"model.fsdp_config.cpu_offload", "false", "shards live on the host"},
    {"model.fsdp_config.offload_params", "false", "weights and gradients live on the host"},
    {"model.enable_gradient_checkpointing", "true", "layers run their forward again in backward"},
    {"model.lora_rank", "0", "rank of the adapters; 0: all weights train"},
    {"model.lora_alpha", "16", "scale of the adapters"},
    {"model.target_modules", "all-linear", "modules that get an adapter"},
    {"model.use_liger", "false", "Liger's kernels"},
    {"model.strategy", "fsdp2", "FSDP1 (fsdp) or FSDP2 (fsdp2)"},
    {"engine.strategy", "", "", "model.strategy"},
    {"optim.clip_grad", "1.0", "gradients are clipped by norm"},
    {"use_remove_padding", "false", "samples are joined without padding"},
    {"model.use_remove_padding", "", "", "use_remove_padding"},
    {"ulysses_sequence_parallel_size", "1", "sequence parallel (Ulysses) degree"},
    {"engine.ulysses_sequence_parallel_size", "", "", "ulysses_sequence_parallel_size"},
    {"engine", "", "whose engine trains (fsdp)"},
    {"trainer.nnodes", "", "machines"},
    {"trainer.n_gpus_per_node", "", "cards of a machine"},
};
constexpr std::string_view kHarmless =
    "data.train_files data.val_files data.train_max_samples data.val_max_samples data.prompt_key data.response_key "
    "data.prompt_dict_keys data.response_dict_keys data.multiturn* data.truncation data.balance_dp_token "
    "data.chat_template data.custom_cls* data.use_shm data.apply_chat_template_kwargs* data.messages_key data.pad_mode "
    "data.num_workers data.enable_thinking_* data.tools_key data.ignore_input_ids_mismatch model.use_shm "
    "model.fsdp_config.wrap_policy* model.external_lib model.trust_remote_code model.tokenizer_path optim.lr "
    "optim.betas optim.weight_decay optim.lr_* optim.warmup_* optim.min_lr_ratio optim.num_cycles "
    "optim.override_optimizer_config* trainer.default_* trainer.project_name trainer.experiment_name trainer.total_* "
    "trainer.logger trainer.seed trainer.save_freq trainer.test_freq trainer.max_ckpt_to_keep trainer.resume_* "
    "trainer.checkpoint* trainer.device checkpoint* profiler* defaults hydra* optim engine.* model.override_config*";
constexpr std::string_view kSource = "volcengine/verl b178a3c: verl/trainer/config/sft_trainer.yaml";

void read_method(KeyReader& reader, Draft& draft) {
  const std::int64_t rank = reader.count("model.lora_rank").value_or(0);
  draft.set("method", Value::of("full"));
  if (rank == 0) return;
  LoraArguments lora;
  lora.rank = rank;
  lora.alpha = reader.count("model.lora_alpha");
  lora.targets = reader.texts("model.target_modules");
  set_lora(lora, draft);
}

// verl 0.9.1 sft_trainer_engine.yaml and its parts: samples joined to 8,192 tokens, FSDP1. The trainer before it, fsdp_sft_trainer, pads.
bool is_engine_trainer(const JobSource& source) {
  const std::vector<std::string>& words = source.launch.program;
  if (words.empty()) return count_keys(source.keys, "engine defaults") > 0;
  return std::find(words.begin(), words.end(), "verl.trainer.sft_trainer") != words.end();
}

// Rows are padded to max_length, unless the padding is taken out.
void read_batch(KeyReader& reader, bool joins, Draft& draft) {
  const std::int64_t length = reader.count("data.max_length", 1).value_or(1024);
  std::int64_t batch = reader.count("data.micro_batch_size_per_gpu", 1).value_or(4);
  if (reader.is_given("data.use_dynamic_bsz") || !joins ? reader.flag("data.use_dynamic_bsz") : joins) {
    const std::int64_t tokens = reader.count("data.max_token_len_per_gpu", 1).value_or(8192);
    batch = std::max<std::int64_t>(1, tokens / length);
    draft.assume("use_dynamic_bsz fills micro-batches up to " + std::to_string(tokens) +
                 " tokens: " + std::to_string(batch) + " of data.max_length");
  }
  const std::int64_t world = std::max<std::int64_t>(1, world_size(draft).value_or(1));
  const std::int64_t whole = reader.count("data.train_batch_size", 1).value_or(256);
  draft.set("batch", std::optional(batch));
  draft.set("seq", std::optional(length));
  draft.set("accumulate", std::optional(std::max<std::int64_t>(1, whole / world / batch)));
  if (reader.is_given("use_remove_padding") || !joins ? reader.flag("use_remove_padding") : joins)
    draft.set("padding_free", Value::of(true));
}

void read_cards(KeyReader& reader, Draft& draft) {
  const auto nodes = reader.count("trainer.nnodes", 1), cards = reader.count("trainer.n_gpus_per_node", 1);
  if (!draft.nodes) draft.nodes = nodes;
  if (!draft.processes && cards && *cards < 1'000'000 && nodes.value_or(1) < 1'000'000)
    draft.processes = *cards * nodes.value_or(1);
}

void read_engine(KeyReader& reader, bool newest, Draft& draft) {
  const Value* group = reader.given("engine");  // hydra's choice among the files of engines
  if (group != nullptr && group->is_string() && !group->as_string().starts_with("fsdp"))
    return reader.problem("engine", quoted(group->as_string()) + " is not billed", "fsdp");
  const bool said = reader.is_given("model.strategy");
  const std::string strategy = newest && !said ? "fsdp" : to_lower(reader.text("model.strategy").value_or("fsdp2"));
  if (strategy != "fsdp" && strategy != "fsdp2")
    reader.problem("model.strategy", quoted(strategy) + " is not billed", "fsdp or fsdp2");
  const bool offload = reader.flag("model.fsdp_config.cpu_offload") || reader.flag("model.fsdp_config.offload_params");
  draft.set("engine", Value::of(strategy == "fsdp" ? "fsdp" : "fsdp2"));
  draft.set("sharding.fsdp", Value::of("full_shard"));
  draft.set("sharding.wrap", Value::of("block"));
  draft.set("sharding.offload", Value::of(offload ? "optimizer+param" : "none"));
  draft.set("sharding.param_dtype", Value::of("bf16"));
  draft.set("sharding.reduce_dtype", Value::of("fp32"));
  spread_sequences(reader.count("ulysses_sequence_parallel_size", 1), "parallel.ulysses", "verl", draft);
}

int claim(const JobSource& source) {
  for (const std::string& word : source.launch.program) {
    if (word.starts_with("verl.")) return 100;
  }
  const Value* model = source.keys.find("model");
  const Value* data = source.keys.find("data");
  const Value* parts =
      source.keys.find("defaults");  // hydra's, of the engine trainer's file, which names the model's own
  const bool described = (model != nullptr && model->is_map()) || (parts != nullptr && parts->is_list());
  const bool blocks = described && data != nullptr && data->is_map();
  return blocks && count_keys(*data, "micro_batch_size_per_gpu train_batch_size train_files max_length") >= 2 ? 100 : 0;
}

void read(const JobSource& source, Draft& draft) {
  KeyReader reader(source.keys, source.file, {{kRows, kHarmless, kSource}}, draft.problems);
  for (const std::string& word : source.launch.program) {
    if (word.starts_with("verl.") && word.find("sft") == std::string::npos)
      draft.problems.add({draft.file, "", word + " trains on what it generates, which is not billed", "sft_trainer"});
  }
  draft.model = reader.text("model.partial_pretrain");
  draft.model_key = "model.partial_pretrain";
  draft.bf16 = true;
  draft.load_dtype = dtype_word(reader.text("model.fsdp_config.model_dtype").value_or("fp32"));
  if (draft.load_dtype.empty()) draft.load_dtype = "fp32";
  draft.set("loop", Value::of("plain"));
  draft.set("attention", Value::of("flash"));
  if (reader.flag("model.use_liger")) draft.set("implementation", Value::of("liger"));
  read_cards(reader, draft);
  read_method(reader, draft);
  const bool newest = is_engine_trainer(source);
  read_batch(reader, newest, draft);
  const bool checkpoints = reader.flag("model.enable_gradient_checkpointing");
  draft.set("checkpointing", Value::of(checkpoints ? "full" : "none"));
  if (checkpoints) draft.set("checkpointing.reentrant", Value::of(false));
  draft.set("clip", Value::of(reader.real("optim.clip_grad").value_or(0) > 0));
  read_engine(reader, newest, draft);
  draft.add_records(reader);
}

}  // namespace

KeyTable verl_table() { return {kRows, kHarmless, kSource}; }

Importer verl_importer() {
  return {"verl", "verl's YAML and overrides of supervised fine-tuning", kSource, claim, read};
}

}  // namespace membill::io
