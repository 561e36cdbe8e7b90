// OpenRLHF's training on given data: deepspeed --module openrlhf.cli.train_sft, train_dpo, train_rm, in the spelling of its releases up
// to 0.9 (--pretrain) and since (--ds.zero_stage).
#include <algorithm>

#include "base/text.h"
#include "io/importers/deepspeed.h"
#include "io/importers/formats.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"pretrain", "", "model"},
    {"model.model_name_or_path", "", "", "pretrain"},
    {"actor.model_name_or_path", "", "", "pretrain"},
    {"reward.model_name_or_path", "", "", "pretrain"},
    {"max_len", "", "tokens of a sequence"},
    {"data.max_len", "", "", "max_len"},
    {"micro_train_batch_size", "", "micro-batch"},
    {"train.micro_batch_size", "", "", "micro_train_batch_size"},
    {"train_batch_size", "128", "sequences of a step on all cards"},
    {"train.batch_size", "", "", "train_batch_size"},
    {"gradient_checkpointing", "false", "layers run their forward again in backward"},
    {"model.gradient_checkpointing_enable", "", "", "gradient_checkpointing"},
    {"actor.gradient_checkpointing_enable", "", "", "gradient_checkpointing"},
    {"gradient_checkpointing_use_reentrant", "false", "reentrant checkpointing"},
    {"model.gradient_checkpointing_reentrant", "", "", "gradient_checkpointing_use_reentrant"},
    {"actor.gradient_checkpointing_reentrant", "", "", "gradient_checkpointing_use_reentrant"},
    {"zero_stage", "2", "ZeRO stage"},
    {"ds.zero_stage", "", "", "zero_stage"},
    {"zpg", "1", "cards of ZeRO++'s second copy"},
    {"ds.zpg", "", "", "zpg"},
    {"adam_offload", "false", "the optimizer lives on the host"},
    {"ds.adam_offload", "", "", "adam_offload"},
    {"overlap_comm", "false", "gradients are reduced beside the backward"},
    {"ds.overlap_comm", "", "", "overlap_comm"},
    {"grad_accum_dtype", "", "dtype in which gradients accumulate"},
    {"ds.grad_accum_dtype", "", "", "grad_accum_dtype"},
    {"bf16", "false", "bf16 weights with an fp32 master"},
    {"param_dtype", "bf16", "dtype of the weights"},
    {"ds.param_dtype", "", "", "param_dtype"},
    {"flash_attn", "false", "flash attention"},
    {"attn_implementation", "", "attention kernel"},
    {"ds.attn_implementation", "", "", "attn_implementation"},
    {"use_liger_kernel", "false", "Liger's kernels"},
    {"ds.use_liger_kernel", "", "", "use_liger_kernel"},
    {"load_in_4bit", "false", "4-bit base"},
    {"ds.load_in_4bit", "", "", "load_in_4bit"},
    {"lora_rank", "0", "rank of the adapters; 0: all weights train"},
    {"ds.lora.rank", "", "", "lora_rank"},
    {"lora_alpha", "16", "scale of the adapters"},
    {"ds.lora.alpha", "", "", "lora_alpha"},
    {"lora_dropout", "0", "dropout before the adapters"},
    {"ds.lora.dropout", "", "", "lora_dropout"},
    {"target_modules", "all-linear", "modules that get an adapter"},
    {"ds.lora.target_modules", "", "", "target_modules"},
    {"packing_samples", "false", "samples of a micro-batch are joined without padding"},
    {"ds.packing_samples", "", "", "packing_samples"},
    {"ring_attn_size", "1", "cards of ring attention"},
    {"ds.ring_attn_size", "", "", "ring_attn_size"},
    {"ds_tensor_parallel_size", "1", "tensor parallel degree"},
    {"ds.tensor_parallel_size", "", "", "ds_tensor_parallel_size"},
    {"optim", "adam", "optimizer"},
    {"max_norm", "1.0", "gradients are clipped by norm"},
    {"beta", "0.1", "strength of the reference"},
    {"model.beta", "", "", "beta"},
    {"ref_offload", "false", "the reference model lives on the host"},
    {"ref.offload", "", "", "ref_offload"},
    {"ref_pretrain", "", "the reference model"},
    {"ref.model_name_or_path", "", "", "ref_pretrain"},
    {"pretrain_mode", "false", "all tokens count"},
    {"model.pretrain_mode_enable", "", "", "pretrain_mode"},
    {"aux_loss_coef", "0", "weight of the router's own loss"},
    {"model.aux_loss_coef", "", "", "aux_loss_coef"},
    {"config", "", "a file of further arguments"},
};
constexpr std::string_view kHarmless =
    "save_path save_steps save_hf_ckpt disable_ds_ckpt logging_steps eval_steps ckpt_path max_ckpt_* load_checkpoint "
    "use_ds_universal_ckpt deepcompile seed full_determinism local_rank disable_trace_cache disable_fast_tokenizer "
    "dataloader_num_workers max_epochs learning_rate l2 adam_betas lr_scheduler lr_warmup_ratio min_lr* "
    "ring_head_stride dataset dataset_probs dataset_split eval_dataset eval_split train_split max_samples multiturn "
    "input_key output_key input_template apply_chat_template tokenizer_chat_template prompt_key chosen_key "
    "rejected_key label_key placeholder_token reward_tokens use_wandb wandb_* use_tensorboard use_ms label_smoothing "
    "nll_loss_coef kl_loss_coef ipo compute_fp32_loss margin_loss loss value_head_prefix max_time_* ckpt.* logger.* "
    "eval.* data.* train.* adam.* muon.* min_lr_ratio experts_implementation ds.experts_implementation ds.deepcompile "
    "ds.use_universal_ckpt ds.ring_attn_head_stride ds.value_head_prefix model.*";
constexpr std::string_view kSource = "OpenRLHF 0.11.2 and 0.3 to 0.9: openrlhf/cli";

std::string program_of(const JobSource& source) {
  for (const std::string& word : source.launch.program)
    if (word.starts_with("openrlhf.cli.")) return word.substr(std::string_view("openrlhf.cli.").size());
  // examples/train_sft.py and its kin, before they were modules.
  if (source.launch.program.size() != 1 || count_keys(source.keys, "pretrain micro_train_batch_size zero_stage") < 3)
    return {};
  const std::string& script = source.launch.program.front();
  return script.starts_with("train_") && script.ends_with(".py") ? script.substr(0, script.size() - 3) : std::string();
}

void read_stage(const std::string& program, KeyReader& reader, Draft& draft) {
  const bool pairs = program == "train_dpo", scores = program == "train_rm";
  if (program != "train_sft" && !pairs && !scores) {
    const bool generates = program.find("ppo") != std::string::npos;
    return draft.problems.add(
        {draft.file, "",
         "openrlhf.cli." + program + (generates ? " trains on what it generates, which" : "") + " is not billed",
         "train_sft, train_dpo or train_rm"});
  }
  draft.set("stage", Value::of(pairs ? "dpo" : scores ? "reward" : reader.flag("pretrain_mode") ? "pretrain" : "sft"));
  if (pairs) draft.set("beta", Value::of(reader.real("beta").value_or(0.1)));
  if (pairs && reader.flag("ref_offload"))
    draft.warnings.push_back("ref_offload is not billed: the reference model is billed on the card");
  reader.use("ref_pretrain"), reader.use("config");
}

void read_method(KeyReader& reader, Draft& draft) {
  draft.set("method", Value::of("full"));
  const std::int64_t rank = reader.count("lora_rank").value_or(0);
  if (rank > 0) {
    LoraArguments lora;
    lora.rank = rank;
    lora.alpha = reader.count("lora_alpha");
    lora.dropout = reader.real("lora_dropout");
    lora.targets = read_targets(reader, "target_modules");
    if (lora.targets.empty()) lora.targets = {"all-linear"};
    set_lora(lora, draft);
  }
  if (reader.flag("load_in_4bit")) set_bits(4, "nf4", true, false, draft);
}

// utils/deepspeed_utils.py get_train_ds_config: DeepSpeed drops the values that are auto, so that its own defaults hold.
void read_engine(KeyReader& reader, Draft& draft) {
  const bool offload = reader.flag("adam_offload");
  const Value host =
      Value::make_map({{"device", Value::of(offload ? "cpu" : "none")}, {"pin_memory", Value::of(true)}});
  Value zero = Value::make_map({{"stage", Value::of(reader.count("zero_stage").value_or(2))},
                                {"offload_optimizer", host},
                                {"zero_hpz_partition_size", Value::of(reader.count("zpg", 1).value_or(1))}});
  if (reader.flag("overlap_comm")) zero.set("overlap_comm", Value::of(true));
  const bool half = !reader.flag("bf16") && dtype_word(reader.text("param_dtype").value_or("bf16")) == "fp16";
  const Value on = Value::make_map({{"enabled", Value::of(true)}});
  Value config = Value::make_map({{half ? "fp16" : "bf16", on}, {"zero_optimization", zero}});
  if (const auto dtype = reader.text("grad_accum_dtype"))
    config.set("data_types", Value::make_map({{"grad_accum_dtype", Value::of(*dtype)}}));
  const std::vector<KeyRecord> kept = draft.records;
  read_deepspeed_part(config, reader.file(), {}, draft);
  draft.records = kept;  // its keys are this function's
  const std::string optimizer = to_lower(reader.text("optim").value_or("adam"));
  set_optimizer(offload ? "cpu-adam" : optimizer == "adam" ? "FusedAdam" : optimizer, draft);
  draft.set("clip", Value::of(reader.real("max_norm").value_or(0) > 0));
  if (const auto cards = reader.count("ring_attn_size", 1); cards.value_or(1) > 1)
    reader.problem("ring_attn_size", "ring attention over several cards is not billed", "1");
  if (const auto tp = reader.count("ds_tensor_parallel_size", 1); tp.value_or(1) > 1) draft.set("parallel.tp", tp);
}

void read_batch(const std::string& program, KeyReader& reader, Draft& draft) {
  const bool sft = program == "train_sft";
  const std::int64_t micro = reader.count("micro_train_batch_size", 1).value_or(program == "train_rm" ? 1 : 8);
  const std::int64_t whole = reader.count("train_batch_size", 1).value_or(128);
  const std::int64_t world = std::max<std::int64_t>(1, world_size(draft).value_or(1));
  draft.set("batch", std::optional(micro));
  draft.set("accumulate", std::optional(std::max<std::int64_t>(1, whole / world / micro)));
  draft.set("seq", std::optional(reader.count("max_len", 1).value_or(sft ? 2048 : 512)));
  const bool joined = reader.flag("packing_samples");
  if (joined && sft) draft.set("padding_free", Value::of(true));
  if (joined && !sft) draft.assume("packing_samples: rows are billed padded to max_len");
  if (joined) return;
  draft.set("lengths", Value::of("varied"));
  draft.set("attention_mask", Value::of(micro > 1));
}

void read_code(KeyReader& reader, Draft& draft) {
  draft.set("loop", Value::of("plain"));
  draft.set("keep_outputs", Value::of(true));  // `output` lives until the next micro-batch
  if (reader.flag("use_liger_kernel")) draft.set("implementation", Value::of("liger"));
  set_attention(reader.text("attn_implementation").value_or("flash_attention_2"), "attn_implementation", draft);
  if (!reader.is_given("attn_implementation") && !reader.flag("flash_attn"))
    draft.assume("flash attention, OpenRLHF's default since its flags have no --flash_attn");
  const bool checkpoints = reader.flag("gradient_checkpointing");
  draft.set("checkpointing", Value::of(checkpoints ? "full" : "none"));
  if (checkpoints) draft.set("checkpointing.reentrant", Value::of(reader.flag("gradient_checkpointing_use_reentrant")));
  if (reader.real("aux_loss_coef").value_or(0) > 0)
    draft.warnings.push_back("aux_loss_coef keeps the logits of the router, which is not billed");
  draft.assume("OpenRLHF's loss over fp32 logits is billed as Transformers' own");
}

int claim(const JobSource& source) { return program_of(source).empty() ? 0 : 100; }

void read(const JobSource& source, Draft& draft) {
  KeyReader reader(source.keys, source.file, {{kRows, kHarmless, kSource}}, draft.problems);
  const std::string program = program_of(source);
  read_stage(program, reader, draft);
  if (!draft.problems.empty()) return;
  draft.model = reader.text("pretrain");
  draft.model_key = "pretrain";
  read_method(reader, draft);
  read_engine(reader, draft);
  read_batch(program, reader, draft);
  read_code(reader, draft);
  draft.add_records(reader);
}

}  // namespace

KeyTable openrlhf_table() { return {kRows, kHarmless, kSource}; }

Importer openrlhf_importer() {
  return {"openrlhf", "flags of OpenRLHF's train_sft, train_dpo and train_rm", kSource, claim, read};
}

}  // namespace membill::io
