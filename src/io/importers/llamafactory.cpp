// LLaMA-Factory's YAML, JSON and flags (llamafactory-cli train).
#include <cmath>

#include "base/text.h"
#include "io/importers/formats.h"
#include "io/importers/images.h"
#include "io/importers/llamafactory_megatron.h"
#include "io/importers/llamafactory_v1.h"
#include "io/importers/megatron_step.h"
#include "io/importers/training_arguments.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"model_name_or_path", "", "model", {}, "model_args.py"},
    {"stage", "sft", "what the job does"},
    {"finetuning_type", "lora", "which parameters train"},
    {"pure_bf16", "false", "weights, gradients and states in bf16"},
    {"lora_rank", "8", "rank of the adapters"},
    {"lora_alpha", "", "scale of the adapters; absent: twice the rank"},
    {"lora_dropout", "0.0", "dropout before the adapters"},
    {"lora_target", "all", "modules that get an adapter"},
    {"oft_rank", "0", "blocks of OFT"},
    {"oft_block_size", "32", "width of OFT's blocks"},
    {"oft_target", "all", "modules that OFT turns the input of"},
    {"pissa_init", "false", "LoRA begins with the weights' largest singular vectors"},
    {"additional_target", "", "modules that train whole"},
    {"use_dora", "false", "DoRA"},
    {"resize_vocab", "false", "without additional_target, embedding and head train", {}, "model_args.py"},
    {"add_tokens", "", "new tokens resize the vocabulary", {}, "model_args.py"},
    {"add_special_tokens", "", "new tokens resize the vocabulary", {}, "model_args.py"},
    {"new_special_tokens", "", "", "add_special_tokens"},
    {"freeze_trainable_layers", "2", "last layers that train"},
    {"freeze_trainable_modules", "all", "modules of those layers that train"},
    {"freeze_extra_modules", "", "further modules that train"},
    {"quantization_bit", "", "bits of the base's weights", {}, "model_args.py"},
    {"quantization_method", "bnb", "who stores them", {}, "model_args.py"},
    {"quantization_type", "nf4", "4-bit format", {}, "model_args.py"},
    {"double_quantization", "true", "the scales are quantised too", {}, "model_args.py"},
    {"flash_attn", "auto", "attention kernel", {}, "model_args.py"},
    {"enable_liger_kernel", "false", "Liger's kernels", {}, "model_args.py"},
    {"use_unsloth", "false", "Unsloth's kernels", {}, "model_args.py"},
    {"use_unsloth_gc", "false", "checkpoints live on the host", {}, "model_args.py"},
    {"disable_gradient_checkpointing", "false", "checkpointing is on unless this is", {}, "model_args.py"},
    {"use_reentrant_gc", "true", "reentrant checkpointing", {}, "model_args.py"},
    {"upcast_lmhead_output", "false", "an fp32 copy of the logits", {}, "model_args.py"},
    {"sequence_parallel_size", "", "cards that share a sequence (360-LLaMA-Factory)"},
    {"sequence_parallel_mode", "", "ulysses, or a ring"},
    {"cutoff_len", "2048", "tokens of a sequence", {}, "data_args.py"},
    {"packing", "", "several samples share a sequence; on for stage pt", {}, "data_args.py"},
    {"neat_packing", "false", "packing without attention across samples", {}, "data_args.py"},
    {"use_galore", "false", "GaLore"},
    {"galore_rank", "16", "rank of GaLore"},
    {"galore_update_interval", "200", "GaLore's update interval"},
    {"galore_layerwise", "false", "gradients are freed layer by layer"},
    {"use_apollo", "false", "APOLLO"},
    {"apollo_rank", "16", "rank of APOLLO"},
    {"apollo_update_interval", "200", "APOLLO's update interval"},
    {"apollo_layerwise", "false", "gradients are freed layer by layer"},
    {"use_badam", "false", "BAdam: one block trains at a time"},
    {"badam_mode", "layer", "which blocks those are"},
    {"use_adam_mini", "false", "Adam-mini"},
    {"use_muon", "false", "Muon"},
    {"pref_loss", "sigmoid", "loss of preference stages"},
    {"pref_beta", "0.1", "strength of the reference"},
    {"fp8", "false", "fp8 linears", {}, "training_args.py"},
    {"use_kt", "false", "experts live on the host (KTransformers)", {}, "model_args.py"},
    {"ref_model", "", "the reference model"},
    {"use_asft_loss", "false", "a second model whose logits the loss compares"},
    {"use_eaft_loss", "false", "a loss that copies the logits"},
    {"shift_attn", "false", "S2 attention", {}, "model_args.py"},
    {"upcast_layernorm", "false", "norms in fp32", {}, "model_args.py"},
    {"freeze_vision_tower", "true", "whether the vision tower trains"},
    {"freeze_multi_modal_projector", "true", "whether the projector trains"},
    {"image_max_pixels", "589824", "pixels that larger images are scaled to", {}, "data_args.py"},
    {"image_min_pixels", "1024", "pixels that smaller images are scaled to", {}, "data_args.py"},
    {"freeze_language_model", "false", "whether the language model trains"},
    {"ref_model_quantization_bit", "", "bits of the reference model"},
    {"mixture_of_depths", "", "layers are skipped for some tokens", {}, "model_args.py"},
    {"moe_aux_loss_coef", "", "weight of the router's own loss", {}, "model_args.py"},
    {"use_v1_kernels", "", "kernels of the v1 trainer", {}, "model_args.py"},
    {"use_dft_loss", "", "the loss weighs each token"},
    {"galore_target", "all", "linears that get low-rank states"},
    {"apollo_target", "all", "linears that get low-rank states"},
    {"use_hyper_parallel", "", "HyperParallel runs the step"},
    {"predict_with_generate", "", "the evaluation generates"},
    {"new_special_tokens_config", "", "", "add_special_tokens"},
    {"use_llama_pro", "false", "new blocks train, given in freeze_trainable_layers"},
};

constexpr std::string_view kHarmless =
    "adapter_name_or_path adapter_folder cache_dir use_fast_tokenizer split_special_tokens "
    "init_special_tokens "
    "model_revision low_cpu_mem_usage rope_scaling train_from_scratch "
    "infer_backend "
    "offload_folder use_kv_cache infer_dtype hf_hub_token ms_hub_token om_hub_token print_param_status "
    "trust_remote_code "
    "quantization_device_map image_* video_* crop_to_patches use_audio_in_video audio_sampling_rate export_* vllm_* "
    "sglang_* kt_* "
    "compute_dtype device_map model_max_length block_diag_attn use_rslora loraplus_lr_ratio loraplus_lr_embedding "
    "pissa_iter pissa_convert "
    "create_new_adapter module_dropout pref_ftx pref_bco_weight dpo_label_smoothing kto_chosen_weight "
    "kto_rejected_weight "
    "simpo_gamma ppo_* ref_model_adapters reward_model* ld_alpha galore_scale "
    "galore_proj_type "
    "apollo_scale apollo_proj* apollo_scale_type apollo_scale_front badam_start_block badam_switch_* "
    "badam_update_ratio badam_mask_mode badam_verbose use_swanlab swanlab_* "
    "use_megatron_bridge "
    "megatron_bridge_args hyper_parallel_* asft_alpha "
    "eaft_alpha "
    "compute_accuracy disable_shuffling "
    "early_stopping_steps "
    "plot_loss include_effective_tokens_per_second template dataset eval_dataset dataset_dir media_dir train_on_prompt "
    "mask_history "
    "streaming buffer_size mix_strategy interleave_probs overwrite_cache preprocessing_* max_samples eval_num_beams "
    "ignore_pad_token_for_loss val_size eval_on_each_dataset tool_format default_system enable_thinking "
    "preserve_thinking tokenized_path "
    "data_shared_file_system ray_* master_addr master_port enable_torch_profiler profiler_* profile_modules fp8_* "
    "_kt_* "
    "resources_per_worker placement_strategy num_workers dataloader_* use_megatron*";

constexpr std::string_view kSource = "hiyouga/LLaMA-Factory ff6d4d1: src/llamafactory/hparams/finetuning_args.py";

// The trainers of preference stages and of reward models are its own, over parts of TRL's.
void read_releases(const std::string& stage, KeyReader& reader, Draft& draft) {
  if (stage != "dpo" && stage != "kto" && stage != "rm") return;
  if (stage != "rm") draft.set("beta", Value::of(reader.real("pref_beta").value_or(0.1)));
  take_release("trl", "0.24", draft);
  take_release("llamafactory", "0.9.5", draft);
}

void read_stage(KeyReader& reader, Draft& draft) {
  const std::string stage = reader.text("stage").value_or("sft");
  read_releases(stage, reader, draft);
  if (stage == "pt" || stage == "sft" || stage == "rm" || stage == "kto") {
    draft.set("stage", Value::of(stage == "pt" ? "pretrain" : stage == "rm" ? "reward" : stage));
  } else if (stage == "dpo") {
    const std::string loss = reader.text("pref_loss").value_or("sigmoid");
    draft.set("stage", Value::of(loss == "orpo" || loss == "simpo" ? loss : std::string("dpo")));
    if (loss != "orpo" && loss != "simpo") draft.set("stage_args.loss_type", Value::of(loss));
  } else {
    reader.problem("stage",
                   stage + (stage == "ppo" ? " with a value head on the policy is not billed" : " is no stage"),
                   "pt, sft, rm, dpo or kto");
  }
}

void read_base(KeyReader& reader, Draft& draft) {
  const std::optional<std::int64_t> bits = reader.count("quantization_bit", 2);
  draft.load_dtype = draft.bf16 ? "bf16" : draft.fp16 ? "fp16" : "auto";
  if (!bits) return;
  const std::string method = to_lower(reader.text("quantization_method").value_or("bnb"));
  if (method == "bnb" || method == "bitsandbytes") {
    return set_bits(*bits, reader.text("quantization_type").value_or("nf4"), reader.flag("double_quantization"), false,
                    draft);
  }
  draft.quantized = true;
  draft.set("weights", Value::of(method + "-int" + std::to_string(*bits)));
  draft.set("kbit_prepare", Value::of(false));
}

bool resizes(KeyReader& reader) {
  return reader.flag("resize_vocab") || reader.is_given("add_tokens") || reader.is_given("add_special_tokens");
}

// Every n-th layer trains, and it alone is checkpointed (model/adapter.py, model/model_utils/checkpointing.py).
void read_llama_pro(std::int64_t count, std::vector<Value> trained, Draft& draft) {
  const std::int64_t layers = find_model(draft).layers;
  if (count < 1 || layers < 1 || layers > 10'000 || layers % count != 0) {
    const std::string what = std::to_string(count) + " blocks do not divide the model's " + std::to_string(layers);
    return draft.problems.add({draft.file, "freeze_trainable_layers", what + " layers", "use_llama_pro false"});
  }
  for (std::int64_t layer = layers / count - 1; layer < layers; layer += layers / count)
    trained.push_back(Value::of("layers." + std::to_string(layer)));
  draft.set("freeze.trainable_layers", Value::of(0));
  draft.set("freeze.trainable_modules", Value::make_list(std::move(trained)));
  draft.set("checkpointing.every", Value::of(layers / count));
}

void read_adapters(bool turns, KeyReader& reader, Draft& draft) {
  LoraArguments lora;
  lora.targets = read_targets(reader, turns ? "oft_target" : "lora_target");
  lora.modules_to_save = reader.texts("additional_target");
  if (lora.modules_to_save.empty() && resizes(reader)) lora.modules_to_save = {"embed_tokens", "lm_head"};
  if (turns) {
    lora.rank = reader.count("oft_rank", 0);
    if (lora.rank == 0) lora.rank.reset();
  } else {
    lora.rank = reader.count("lora_rank", 1);
    lora.alpha = reader.count("lora_alpha");
    lora.dropout = reader.real("lora_dropout");
    lora.dora = reader.flag("use_dora");
    if (reader.flag("pissa_init"))
      draft.assume(
          "pissa_init: the steps are LoRA's; before them each target's weight is decomposed in fp32 (SVD), one at a "
          "time, which is not billed");
  }
  set_lora(lora, draft);
  if (!turns) return;
  draft.set("method", Value::of("oft"));
  draft.set("adapter.block_size", reader.count("oft_block_size", 0));
}

void read_method(KeyReader& reader, Draft& draft) {
  const std::string type = reader.text("finetuning_type").value_or("lora");
  if (type == "lora" || type == "oft") {
    read_adapters(type == "oft", reader, draft);
  } else if (type == "full") {
    draft.set("method", Value::of("full"));
  } else if (type == "freeze") {
    draft.set("method", Value::of("freeze"));
    const double layers = std::fabs(reader.real("freeze_trainable_layers").value_or(2));
    if (layers < 1e6) draft.set("freeze.trainable_layers", Value::of(static_cast<std::int64_t>(layers)));
    std::vector<Value> extra;
    if (const auto names = reader.text("freeze_trainable_modules"); names && *names != "all")
      draft.warnings.push_back("freeze_trainable_modules " + *names +
                               " is not billed: the whole of the last layers is");
    for (const std::string& name : reader.texts("freeze_extra_modules")) extra.push_back(Value::of(name));
    if (reader.flag("use_llama_pro")) return read_llama_pro(static_cast<std::int64_t>(layers), std::move(extra), draft);
    if (!extra.empty()) draft.set("freeze.trainable_modules", Value::make_list(std::move(extra)));
  } else {
    reader.problem("finetuning_type", quoted(type) + " is not billed", "lora, oft, freeze or full");
  }
}

// Low-rank and other special optimizers, which replace optim.
void read_own_optimizers(KeyReader& reader, Draft& draft) {
  for (const std::string name : {"galore", "apollo"}) {
    if (!reader.flag("use_" + name)) continue;
    set_optimizer(name, draft);
    draft.set("optimizer_args.rank", Value::of(value_text(Value::of(reader.count(name + "_rank", 1).value_or(16)))));
    draft.set("optimizer_args.update_proj_gap",
              Value::of(value_text(Value::of(reader.count(name + "_update_interval", 1).value_or(200)))));
    if (reader.flag(name + "_layerwise")) set_layerwise(draft);
    if (const auto target = reader.text(name + "_target"); target && *target != "all")
      draft.warnings.push_back(name + "_target " + *target + " is not billed: every linear gets low-rank states");
  }
  if (reader.flag("use_adam_mini")) set_optimizer("adam-mini", draft);
  if (reader.flag("use_muon")) set_optimizer("muon", draft);
}

constexpr LeftOut kLeftOut[] = {
    {"use_asft_loss", "runs a frozen second model and keeps its logits: neither is billed"},
    {"use_eaft_loss", "copies the logits of the answers once more: the copy is not billed"},
    {"mixture_of_depths", "is not billed: every layer is billed for every token"},
    {"shift_attn", "is billed as attention over the whole sequence"},
    {"upcast_layernorm", "is not billed: norms are billed in the dtype of the base"},
    {"freeze_vision_tower", "false trains the vision tower, which is billed as frozen without --images", true},
    {"freeze_multi_modal_projector", "false trains the projector, which is billed as frozen without --images", true},
    {"freeze_language_model", "is not billed: the language model is billed as it trains"},
    {"ref_model_quantization_bit", "is not billed: the reference model is billed in 16 bits"},
    {"ref_model", "is not billed: the reference model is billed with the policy's shapes"},
    {"use_v1_kernels", "is not billed: layers are billed as Transformers writes them"},
    {"use_dft_loss", "weighs each token by its probability: the copies for it are not billed"},
    {"use_hyper_parallel", "is not billed: the step is billed as the Trainer runs it"},
    {"predict_with_generate", "lets the evaluation generate, which is not billed"}};

// Until version 0.7 the key was a switch for FlashAttention-2.
void read_attention(KeyReader& reader, Draft& draft) {
  const std::string word = reader.text("flash_attn").value_or("auto");
  const std::optional<bool> old_switch = as_flag(Value::of(word));
  if (old_switch)
    draft.assume("flash_attn as a switch is of LLaMA-Factory before 0.7: FlashAttention-2 or the model's own");
  set_attention(old_switch ? (*old_switch ? "fa2" : "auto") : word, "flash_attn", draft);
}

void read_code(KeyReader& reader, Draft& draft) {
  warn_of_left_out(kLeftOut, reader, draft);
  read_images(reader, kLlamaFactoryImages, draft);
  read_attention(reader, draft);
  if (reader.flag("enable_liger_kernel")) draft.set("implementation", Value::of("liger"));
  if (reader.flag("use_unsloth")) draft.set("implementation", Value::of("unsloth"));
  const bool checkpoints = !reader.flag("disable_gradient_checkpointing");
  draft.set("checkpointing", Value::of(checkpoints ? "full" : "none"));
  if (checkpoints && reader.flag("use_unsloth_gc")) draft.set("checkpointing.offload", Value::of(true));
  if (reader.flag("upcast_lmhead_output")) draft.set("loss", Value::of("upcast"));
  if (reader.flag("fp8")) draft.warnings.push_back("fp8 linears are billed as 16-bit ones");
  if (reader.real("moe_aux_loss_coef").value_or(0) > 0)
    draft.warnings.push_back("moe_aux_loss_coef keeps the logits of the router, which is not billed");
  if (reader.flag("use_kt"))
    draft.warnings.push_back("KTransformers keeps experts on the host: they are billed on the card");
}

// badam/block_optim.py: one layer has gradients, states and an fp32 copy at a time, the first as much as the last, whose backward reaches
// least far. In LLaMA-Factory embedding and head are never among the blocks.
void read_badam(KeyReader& reader, Draft& draft) {
  if (!reader.flag("use_badam")) return;
  if (plan_text(draft, "method") != "full" || plan_text(draft, "engine") == "deepspeed" ||
      to_lower(reader.text("badam_mode").value_or("layer")) != "layer")
    return reader.problem("use_badam", "is billed of full fine-tuning by layers without DeepSpeed only",
                          "finetuning_type full, badam_mode layer");
  draft.set("method", Value::of("freeze"));
  draft.set("freeze.trainable_layers", Value::of(0));
  draft.set("freeze.trainable_modules", Value::make_list({Value::of("layers.0")}));
  draft.set("gradient_dtype", Value::of("fp32"));
  draft.set("moment_dtype", Value::of("fp32"));
  draft.assume("BAdam: one layer trains at a time, billed as the first, with fp32 gradients and moments");
  draft.warnings.push_back("use_badam keeps an fp32 copy of the layer that trains, which is not billed");
}

// Once the engine is known: trainable weights are cast to fp32, and FSDP2 does not checkpoint reentrantly.
void settle(KeyReader& reader, Draft& draft) {
  const std::string engine = plan_text(draft, "engine");
  const Value* zero = draft.plan.find("sharding.zero");
  const bool zero3 = engine == "deepspeed" && zero != nullptr && zero->is_int() && zero->as_int() == 3;
  const bool upcasts = !reader.flag("pure_bf16") && !reader.flag("use_badam") && !zero3;
  if (reader.flag("pure_bf16")) {
    draft.own_precision = true;
    if (!draft.quantized) draft.set("weights", Value::of("bf16"));
    draft.set("precision", Value::of("pure-bf16"));
    if (zero3) reader.problem("pure_bf16", "is refused beside ZeRO-3");
  } else if (plan_text(draft, "method") == "full" && upcasts) {
    draft.load_dtype = "fp32";
  } else if (plan_text(draft, "method") == "freeze" && upcasts && engine != "deepspeed" && (draft.bf16 || draft.fp16)) {
    draft.set("gradient_dtype", Value::of("fp32"));
    draft.set("moment_dtype", Value::of("fp32"));
    draft.assume(
        "the layers that train are cast to fp32: their gradients and moments are billed so, their weights in the dtype "
        "of the base");
  }
  const bool checkpoints = plan_text(draft, "checkpointing") == "full";
  // of frozen layers none is checkpointed, and the inputs of those that train are made to need a gradient
  if (checkpoints)
    draft.set("checkpointing.reentrant", Value::of(engine != "fsdp2" && plan_text(draft, "method") != "freeze" &&
                                                   reader.flag("use_reentrant_gc")));
}

int claim(const JobSource& source) {
  if (!source.launch.program.empty() && source.launch.program.front() == "llamafactory-cli") return 100;
  const Value& keys = source.keys;
  if (keys.find("finetuning_type") != nullptr || runs_on_v1(source)) return 90;
  return count_keys(keys,
                    "cutoff_len template stage quantization_bit lora_target val_size model_name_or_path dataset_dir") >=
                 3
             ? 80
             : 0;
}

// Of the releases that are started by src/train_bash.py.
constexpr KeyRow kFirst[] = {{"cutoff_len", "1024", "tokens of a sequence"}};

void read_on_megatron(const JobSource& source, Draft& draft) {
  KeyReader reader(
      source.keys, source.file,
      {llamafactory_megatron_table(), llamafactory_table(), megatron_step_table(), training_arguments_table()},
      draft.problems);
  draft.model = reader.text("model_name_or_path");
  draft.model_key = "model_name_or_path";
  read_stage(reader, draft);
  read_method(reader, draft);
  read_llamafactory_megatron(reader, source, draft);
  draft.add_records(reader);
}

void read(const JobSource& source, Draft& draft) {
  if (runs_on_v1(source)) return read_llamafactory_v1(source, draft);
  if (runs_on_megatron(source)) return read_on_megatron(source, draft);
  std::vector<KeyTable> tables{llamafactory_table(), training_arguments_table()};
  if (source.launch.program.size() > 1 && source.launch.program[1] == "train_bash")
    tables.insert(tables.begin(), {kFirst, {}, "LLaMA-Factory 0.6 data_args.py"});
  KeyReader reader(source.keys, source.file, tables, draft.problems);
  draft.model = reader.text("model_name_or_path");
  draft.model_key = "model_name_or_path";
  read_stage(reader, draft);
  read_training_arguments(reader, true, draft);
  read_own_optimizers(reader, draft);
  read_method(reader, draft);
  read_base(reader, draft);
  read_code(reader, draft);
  draft.set("seq", reader.count("cutoff_len", 1));
  if (const auto ranks = reader.count("sequence_parallel_size", 1); ranks.value_or(1) > 1)
    draft.set(reader.text("sequence_parallel_mode") == "ulysses" ? "parallel.ulysses" : "parallel.cp", ranks);
  const bool packing =
      reader.maybe_flag("packing").value_or(plan_text(draft, "stage") == "pretrain") || reader.flag("neat_packing");
  draft.set("packing", Value::of(packing));
  if (!packing) set_padded(draft);
  // neat_packing: the collator makes the mask of the documents unless the kernel takes their boundaries
  if (reader.flag("neat_packing")) draft.set("attention_mask", Value::of(plan_text(draft, "attention") != "flash"));
  read_sharding_arguments(reader, source.launch, draft);
  // hparams/parser.py: "`ddp_find_unused_parameters` needs to be set as False for LoRA in DDP training"
  const bool ddp = plan_text(draft, "engine").empty() && world_size(draft).value_or(1) > 1;
  if (ddp && plan_text(draft, "method") == "lora" && draft.plan.find("sharding.find_unused_parameters") == nullptr)
    draft.set("sharding.find_unused_parameters", Value::of(false));
  set_quant_storage(draft.bf16 ? "bfloat16" : "float16",
                    draft);  // model/model_utils/quantization.py: the compute dtype
  settle(reader, draft);
  read_badam(reader, draft);
  draft.add_records(reader);
}

}  // namespace

KeyTable llamafactory_table() { return {kRows, kHarmless, kSource}; }

Importer llamafactory_importer() {
  return {"llamafactory", "LLaMA-Factory's YAML, JSON and flags", kSource, claim, read};
}

}  // namespace membill::io
