#include "estimate/supported.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/engine_keys.h"
#include "blocks/generations.h"
#include "blocks/quantized.h"
#include "blocks/torchtune_distill.h"
#include "blocks/torchtune_pairs.h"
#include "blocks/trl_liger.h"
#include "catalog/plan_fields/words.h"
#include "estimate/engines/bf16_optimizer.h"
#include "estimate/engines/placement.h"
#include "estimate/sequence_checks.h"
#include "estimate/split_model.h"
#include "estimate/stage_run.h"
#include "membill/catalog.h"
#include "program/aten_operators.h"

namespace membill {
namespace {

using Plan = TrainingPlan;

// A part of the plan: when it is not billed, the text that names it (empty: it is billed), and what is.
struct Limit {
  const char* key;
  std::string (*unbilled)(const Plan& plan);
  const char* billed;
};

template <typename T>
bool is_one_of(T value, std::initializer_list<T> billed) {
  return std::find(billed.begin(), billed.end(), value) != billed.end();
}

std::string unless(bool billed, std::string_view text) { return billed ? std::string() : std::string(text); }

std::string unbilled_optimizer(const Plan& plan) {
  const OptimizerRow* row = find_optimizer(plan.optimizer);
  if (row == nullptr) return {};
  return unless(row->gradients != GradientLife::one_block, row->name);
}

// torchtune's recipes train adapters.
std::string unbilled_distillation(const Plan& plan) {
  if (!runs_torchtune_distillation(plan))
    return "distill with implementation " + std::string(word_of(kImplementationWords, plan.implementation));
  const bool adapts = is_one_of(plan.method, {Method::lora, Method::dora});
  return unless(adapts, "distill with method " + std::string(word_of(kMethodWords, plan.method)));
}

std::string unbilled_stage(const Plan& plan) {
  const std::string stage(word_of(kStageWords, plan.stage));
  const bool supervised = is_one_of(plan.stage, {Stage::sft, Stage::pretrain});
  if (supervised) return {};
  const bool whole_runs = is_one_of(plan.engine, {Engine::torch, Engine::fsdp2});
  if (runs_torchtune_pairs(plan)) return unless(whole_runs, stage + " with torchtune under another engine");
  if (plan.stage == Stage::distill) return unbilled_distillation(plan);
  if (is_one_of(plan.implementation, {Implementation::torchtune, Implementation::torchtitan}))
    return stage + " with " + std::string(word_of(kImplementationWords, plan.implementation));
  if (plan.stage == Stage::classification && has_own_model_code(plan)) return stage + " outside of Transformers";
  const bool whole = is_one_of(plan.stage, {Stage::ppo, Stage::inference});
  if (is_one_of(plan.engine, {Engine::torch, Engine::ddp}) || (!whole && !runs_megatron_layers(plan))) return {};
  return stage + " with engine " + std::string(word_of(kEngineWords, plan.engine));
}

// Modules that selective recompute knows (megatron-core 0.16 transformer/transformer_config.py).
constexpr std::array<std::string_view, 7> kRecomputed = {"core_attn", "mlp",         "moe",           "layernorm",
                                                         "moe_act",   "mla_up_proj", "shared_experts"};

// Megatron's own: full with its methods, and modules by name.
std::string unbilled_recompute(const CheckpointPlan& c) {
  if (c.offload) return "offload";
  if (c.mode != Checkpointing::selective) return {};
  for (const std::string& module : c.selective)
    if (std::find(kRecomputed.begin(), kRecomputed.end(), module) == kRecomputed.end()) return "selective " + module;
  return {};
}

std::string unbilled_checkpointing(const Plan& plan) {
  const CheckpointPlan& c = plan.checkpointing;
  const bool grouped = c.method == "block" || c.layers.value_or(1) > 1;
  if (runs_megatron_layers(plan) && plan.engine != Engine::megatron && grouped) return "checkpointing in groups";
  if (runs_megatron_layers(plan)) return unbilled_recompute(c);
  if (c.mode == Checkpointing::none) return {};
  if (c.mode == Checkpointing::selective)
    for (const std::string& name : c.selective)
      if (!find_aten_operator(name)) return "selective " + name;
  if (c.offload && plan.implementation == Implementation::torchtitan) return "offload with torchtitan";
  return unless(c.method.empty() && !c.layers, "Megatron's method");
}

// Adapters other than LoRA have been measured in Hugging Face's code on whole models; virtual tokens in its supervised stages.
std::string unbilled_adapters(const Plan& plan) {
  if (is_one_of(plan.method, {Method::full, Method::freeze, Method::lora, Method::dora})) return {};
  const bool tokens = is_one_of(plan.method, {Method::prompt, Method::ptuning, Method::prefix});
  const bool supervised = is_one_of(plan.stage, {Stage::sft, Stage::pretrain});
  const bool billed = is_one_of(plan.engine, {Engine::torch, Engine::ddp}) && (supervised || !tokens) &&
                      plan.implementation == Implementation::hf;
  return unless(billed, std::string(word_of(kMethodWords, plan.method)) + " in such a job");
}

// What stage 3 does with the codes has been measured.
bool shards_or_keeps_codes(Packing packing) {
  return is_one_of(packing, {Packing::gptq, Packing::awq, Packing::half_quadratic});
}

// Packed weights of others than bitsandbytes have been measured in Hugging Face's code on whole models.
bool is_packed_elsewhere(const Plan& plan) {
  const WeightFormatRow& row = weight_format(plan.weights);
  if (!row.quantized || row.packing == Packing::bitsandbytes || row.packing == Packing::llm_int8) return false;
  // Codes are buffers or of types that DeepSpeed 0.19 runtime/engine.py CASTABLE_DTYPES lacks: below stage 3 it leaves them as they are.
  // gptqmodel's are buffers, which nobody shards. HQQ's are parameters of integers: stage 3 and FSDP2 divide them, FSDP1 refuses them.
  const bool below_3 = plan.engine == Engine::deepspeed && plan.sharding.zero < 3;
  const bool sharded = ((codes_are_buffers(plan) || codes_are_integers(plan)) && plan.engine == Engine::fsdp2) ||
                       (shards_or_keeps_codes(row.packing) && plan.engine == Engine::deepspeed);
  const bool whole = (below_3 || sharded || is_one_of(plan.engine, {Engine::torch, Engine::ddp})) &&
                     is_one_of(plan.implementation, {Implementation::hf, Implementation::liger});
  return !whole ||
         !is_one_of(plan.method, {Method::lora, Method::oft, Method::prompt, Method::prefix, Method::ptuning});
}

std::string unbilled_deepspeed(const Plan& plan) {
  const ShardingPlan& s = plan.sharding;
  const WeightFormatRow& row = weight_format(plan.weights);
  if (s.zero == 3 && row.quantized && !is_4bit(plan.weights) && !shards_or_keeps_codes(row.packing))
    return "ZeRO-3 over " + std::string(row.name);
  if (runs_mics(plan) && runs_torch_autocast(plan)) return "torch_autocast with MiCS";
  if (s.zero == 3 && runs_megatron_layers(plan)) return "ZeRO-3 over Megatron's layers";
  if (s.zero == 0 && s.offload != "none") return "offload " + s.offload;
  return {};
}

std::string unbilled_fsdp(const Plan& plan) {
  const ShardingPlan& s = plan.sharding;
  const bool second = plan.engine == Engine::fsdp2;
  if (second && s.fsdp == "no_shard") return "FSDP's no_shard";
  if (s.offload == "optimizer" || s.offload == "nvme") return "offload " + s.offload;
  if (second && engine_word(plan, "wrap", "") == "peft") return "FSDP2 with PEFT's wrapping";
  const bool four_bits = is_4bit(plan.weights), divides_codes = codes_are_buffers(plan) || codes_are_integers(plan);
  if (weight_format(plan.weights).quantized && !four_bits && !(second && divides_codes))
    return "FSDP over " + std::string(weight_format(plan.weights).name);
  const bool floating = engine_word(plan, "quant_storage", "uint8") != "uint8";
  const bool torchao = plan.implementation == Implementation::torchtune;
  if (four_bits && !floating && !torchao && (!second || plan.loop != Loop::trainer))
    return "FSDP over 4-bit weights stored as uint8";
  return {};
}

// mcore_bridge 1.6 tuners/lora.py
std::string unbilled_megatron_adapters(const Plan& plan) {
  const AdapterPlan& a = plan.adapter;
  if (weight_format(plan.weights).quantized) return std::string(weight_format(plan.weights).name) + " under Megatron";
  if (!a.modules_to_save.empty() || a.trainable_tokens > 0) return "modules_to_save under Megatron";
  if (a.lora_bias) return "lora_bias under Megatron";
  if (plan.parallel.expert_tp > 1) return "LoRA with expert_tp";
  if (engine_number(plan, "mtp_num_layers", 0) > 0) return "LoRA with next-token layers (mtp_num_layers)";
  return unless(a.layers.empty() && a.exclude.empty() && a.rank_pattern.empty(), "LoRA on some layers under Megatron");
}

std::string unbilled_megatron(const Plan& plan) {
  if (!runs_megatron_layers(plan)) return {};
  const bool adapts = plan.method == Method::lora && plan.engine == Engine::megatron;
  if (plan.method != Method::full && !adapts)
    return std::string(word_of(kMethodWords, plan.method)) + " under Megatron";
  if (plan.engine != Engine::megatron) return {};
  const std::string& offload = plan.sharding.offload;
  if (offload != "none" && offload != "optimizer") return "offload " + offload + " under Megatron";
  if (adapts) return unbilled_megatron_adapters(plan);
  return unless(plan.parallel.ulysses == 1, "Ulysses under Megatron");
}

std::string unbilled_sharding(const Plan& plan) {
  if (plan.engine == Engine::deepspeed) return unbilled_deepspeed(plan);
  if (plan.engine == Engine::fsdp || plan.engine == Engine::fsdp2) return unbilled_fsdp(plan);
  return {};
}

std::string unbilled_torchtune(const Plan& plan) {
  if (plan.implementation != Implementation::torchtune) return {};
  if (weight_format(plan.weights).quantized && plan.weights != WeightFormat::nf4)
    return "torchtune with " + std::string(weight_format(plan.weights).name);
  return unless(is_one_of(plan.engine, {Engine::torch, Engine::fsdp2}),
                "torchtune with engine " + std::string(word_of(kEngineWords, plan.engine)));
}

// torchtitan 0.2.2 trains whole models from text, on one card, with replicas, or under FSDP2.
std::string unbilled_torchtitan(const Plan& plan) {
  if (plan.implementation != Implementation::torchtitan) return {};
  if (plan.method != Method::full) return std::string(word_of(kMethodWords, plan.method)) + " with torchtitan";
  if (weight_format(plan.weights).quantized) return "torchtitan with " + std::string(weight_format(plan.weights).name);
  if (plan.evaluation.batch) return "evaluation with torchtitan";
  return unless(is_one_of(plan.engine, {Engine::torch, Engine::ddp, Engine::fsdp2}),
                "torchtitan with engine " + std::string(word_of(kEngineWords, plan.engine)));
}

std::string unbilled_joining(const Plan& plan) {
  const bool supervised = is_one_of(plan.stage, {Stage::sft, Stage::pretrain});
  const bool classic_pairs = plan.stage == Stage::dpo && generations(plan).trl == Generations::Trl::classic;
  if (!joins_rows(plan) || supervised || (classic_pairs && !runs_liger_loss(plan))) return {};
  return std::string(word_of(kStageWords, plan.stage)) + " without padding";
}

// DPO with adapters and checkpointing fails: the reference's layers are recomputed with the adapters on (trl 0.24, measured). KTO
// refuses adapters.
std::string unbilled_liger_loss(const Plan& plan) {
  if (!runs_liger_loss(plan)) return {};
  if (!is_one_of(plan.engine, {Engine::torch, Engine::ddp}))
    return "use_liger_loss with engine " + std::string(word_of(kEngineWords, plan.engine));
  if (plan.stage == Stage::grpo) return {};
  if (!has_reference(plan)) return "use_liger_loss with log-probabilities of the reference that were made before";
  const bool recomputes = plan.checkpointing.mode != Checkpointing::none;
  const bool adapters = plan.method != Method::full && plan.method != Method::freeze;
  if (plan.stage == Stage::kto) return unless(!adapters, "use_liger_loss over adapters, which TRL 0.24's KTO refuses,");
  return unless(!recomputes || !adapters, "use_liger_loss over adapters with checkpointing, where TRL 0.24 fails,");
}

// DeepSpeed's AutoTP over Transformers' layers is billed. accelerate 1.15 prepares FSDP2's by a class that Transformers 5 no longer has.
std::string unbilled_tensor_parallelism(const Plan& plan) {
  if (plan.parallel.tp == 1 || runs_megatron_layers(plan)) return {};
  const std::string degree = "tensor parallelism (tp " + std::to_string(plan.parallel.tp) + ")";
  const bool supervised = is_one_of(plan.stage, {Stage::sft, Stage::pretrain});
  if (!splits_layers(plan)) {
    const bool accelerate = plan.engine == Engine::fsdp2 && plan.implementation == Implementation::hf;
    return degree + " with engine " + std::string(word_of(kEngineWords, plan.engine)) +
           (accelerate ? ", which accelerate 1.15 fails to prepare over Transformers 5," : "");
  }
  if (plan.sharding.zero == 3) return degree + " with ZeRO-3";
  if (plan.method != Method::full || weight_format(plan.weights).quantized) return degree + " with adapters";
  return unless(supervised, degree + " in stage " + std::string(word_of(kStageWords, plan.stage)));
}

// DeepSpeed 0.19 module_inject/auto_ep_layer.py; transformers 5.24 distributed/expert_parallel.py, fsdp.py.
std::string who_divides_experts(const Plan& plan) {
  std::string engine = " with engine " + std::string(word_of(kEngineWords, plan.engine));
  if (plan.engine == Engine::deepspeed)
    return engine + ", whose AutoEP runs layers of its own in the place of the model's experts,";
  if (plan.engine != Engine::fsdp2) return engine;
  if (plan.implementation == Implementation::torchtitan) return " with torchtitan, whose experts have no program here,";
  return engine + ", which shards experts over other ranks than the rest of their layers,";
}

std::string unbilled_parallelism(const Plan& plan) {
  const ParallelPlan& p = plan.parallel;
  if (plan.engine == Engine::megatron) return {};
  if (std::string tensors = unbilled_tensor_parallelism(plan); !tensors.empty()) return tensors;
  if (p.ep > 1) return "expert parallelism (ep " + std::to_string(p.ep) + ")" + who_divides_experts(plan);
  const std::pair<std::string_view, std::int64_t> degrees[] = {
      {"a pipeline (pp ", p.pp}, {"tensor parallelism of experts (expert_tp ", p.expert_tp}};
  for (const auto& [name, degree] : degrees)
    if (degree > 1)
      return std::string(name) + std::to_string(degree) + ") with engine " +
             std::string(word_of(kEngineWords, plan.engine));
  return unbilled_sequence_parallelism(plan);
}

std::string unbilled_evaluation(const Plan& plan) {
  if (!plan.evaluation.batch) return {};
  if (generates(plan.stage)) return "evaluation by generation";
  if (plan.stage == Stage::distill) return "evaluation beside a teacher";
  if (joins_rows(plan)) return "evaluation of joined rows";
  return unless(plan.engine != Engine::megatron, "evaluation under Megatron");
}

std::string unbilled_saving(const Plan& plan) {
  if (plan.save.state == "none") return {};
  if (plan.stage == Stage::inference) return "saving under inference";
  if (plan.save.state == "full" || plan.engine == Engine::megatron) return {};
  const bool shards = plan.engine == Engine::deepspeed ? plan.sharding.zero == 3 : shards_parameters(plan);
  return unless(shards, "a sharded state where no rank has a part");
}

// Towers have been measured in Transformers' code on whole models, in supervised stages.
std::string unbilled_images(const Plan& plan) {
  if (plan.vision.images == 0) return {};
  const bool supervised = is_one_of(plan.stage, {Stage::sft, Stage::pretrain});
  if (!supervised) return "a batch with images in stage " + std::string(word_of(kStageWords, plan.stage));
  if (plan.implementation != Implementation::hf)
    return "a batch with images with implementation " + std::string(word_of(kImplementationWords, plan.implementation));
  const bool whole = is_one_of(plan.engine, {Engine::torch, Engine::ddp, Engine::deepspeed});
  if (!whole || shards_parameters(plan)) return "a batch with images where an engine shards the parameters";
  if (plan.evaluation.batch) return "a batch with images beside an evaluation";
  return unless(plan.parallel.cp * plan.parallel.ulysses == 1, "a batch with images in sequences spread over ranks");
}

constexpr std::array kLimits{
    Limit{"stage", unbilled_stage,
          "pretrain, sft, classification, reward, dpo, orpo, simpo, kto, grpo, ppo, inference; distill with lora or "
          "dora and "
          "implementation torchtune"},
    Limit{"method", unbilled_adapters, "lora, or stage sft with engine torch or ddp and implementation hf"},
    Limit{"weights",
          [](const Plan& p) {
            const WeightFormatRow& row = weight_format(p.weights);
            if (p.stage == Stage::inference || (row.adapters && !is_packed_elsewhere(p))) return std::string();
            return std::string(row.name) + (row.adapters ? " in such a job" : " in training");
          },
          "fp32, bf16, fp16, int8, nf4, fp4; fp8, gptq, awq and hqq with adapters on one card, ddp or ZeRO below stage "
          "3; gptq, awq and hqq with FSDP2 and ZeRO-3, too"},
    Limit{"precision", [](const Plan& p) { return unless(p.precision != Precision::fp8, regime(p.precision).name); },
          "fp32, amp-bf16, amp-fp16, pure-bf16, pure-fp16, master-bf16, master-fp16"},
    Limit{"optimizer", unbilled_optimizer, "every row of membill optimizers but badam, lisa"},
    Limit{"optimizer_in_backward",
          [](const Plan& p) {
            const bool on_card = p.engine == Engine::fsdp2 && p.sharding.offload == "none";
            return unless(!p.optimizer_in_backward || p.engine == Engine::torch || on_card, "true");
          },
          "false, or true with engine torch, or fsdp2 without offload"},
    Limit{"checkpointing", unbilled_checkpointing,
          "none, full, selective:ops: with aten.mm, addmm, bmm, _grouped_mm, _softmax, silu, gelu, "
          "_scaled_dot_product_flash_attention, _scaled_dot_product_efficient_attention; with engine megatron "
          "selective:core_attn,mlp,moe,layernorm,moe_act,mla_up_proj,shared_experts"},
    Limit{"attention",
          [](const Plan& p) {
            const bool own = p.attention == AttentionKernel::fused_softmax && !runs_megatron_layers(p);
            return unless(!own, word_of(kAttentionWords, p.attention));
          },
          "sdpa, flash, mem-efficient, sdpa-math, eager; with engine megatron fused-softmax"},
    Limit{"loss",
          [](const Plan& p) {
            const bool plain = !p.loss || is_one_of(*p.loss, {LossKind::native, LossKind::upcast});
            const bool megatron = runs_megatron_layers(p);
            const bool fused = p.loss == LossKind::fused && p.implementation != Implementation::torchtune && !megatron;
            const bool chunked = p.loss == LossKind::chunked && p.implementation != Implementation::liger && !megatron;
            return unless(plain || fused || chunked, p.loss ? word_of(kLossWords, *p.loss) : "");
          },
          "null, native, upcast; fused but with torchtune and megatron; chunked:N but with liger and megatron"},
    Limit{"implementation",
          [](const Plan& p) {
            return unless(
                is_one_of(p.implementation, {Implementation::hf, Implementation::liger, Implementation::torchtune,
                                             Implementation::torchtitan, Implementation::litgpt,
                                             Implementation::megatron, Implementation::unsloth}),
                word_of(kImplementationWords, p.implementation));
          },
          "hf, liger, torchtune, torchtitan, litgpt, megatron, unsloth"},
    Limit{"engine", unbilled_megatron, "full training and LoRA with tp, sp, pp, virtual_pp, cp, ep and expert_tp"},
    Limit{"precision",
          [](const Plan& p) {
            const bool fp32 = p.precision == Precision::fp32 && p.weights == WeightFormat::fp32;
            const bool other = p.engine == Engine::deepspeed && !fp32 && !runs_torch_autocast(p) &&
                               !regime(as_engine_runs(p).precision).master;
            return unless(!other, std::string(regime(p.precision).name) + " under DeepSpeed");
          },
          "amp-bf16, amp-fp16, master-bf16, master-fp16, fp32 over fp32 weights"},
    Limit{"sharding", unbilled_sharding, "ZeRO 0 to 3; FSDP full_shard, shard_grad_op, hybrid_shard, no_shard"},
    Limit{"parallel", unbilled_parallelism,
          "degrees of 1; cp or ulysses with stage sft or pretrain, implementation hf or liger, cp with torchtitan, "
          "attention "
          "sdpa or flash; "
          "tp of full training with engine deepspeed below ZeRO-3"},
    Limit{"implementation", unbilled_torchtune, "fp32, bf16, fp16 or nf4 weights with engine torch or fsdp2"},
    Limit{"implementation", unbilled_torchtitan,
          "full training of fp32 or bf16 weights with engine torch, ddp or fsdp2"},
    Limit{"compile",
          [](const Plan& p) {
            const bool bounded =
                is_one_of(p.implementation, {Implementation::hf, Implementation::liger, Implementation::torchtitan});
            return unless(!p.compile || bounded,
                          "true with implementation " + std::string(word_of(kImplementationWords, p.implementation)));
          },
          "true with implementation hf, liger or torchtitan, false"},
    Limit{"padding_free", unbilled_joining, "true with sft, pretrain and TRL 0.24's dpo, false"},
    Limit{"stage_args.use_liger_loss", unbilled_liger_loss,
          "true with engine torch or ddp, a reference, and checkpointing none over adapters; false"},
    Limit{"vocab_pad_to", [](const Plan& p) { return unless(!p.vocab_pad_to || runs_megatron_layers(p), "padding"); },
          "null, or a multiple with engine megatron"},
    Limit{"vision.images", unbilled_images,
          "images with stage sft or pretrain, implementation hf, engine torch, ddp or deepspeed below ZeRO-3"},
    Limit{"evaluation.batch", unbilled_evaluation, "null with Megatron and with stages that generate"},
    Limit{"save.state", unbilled_saving, "none, full; sharded with FSDP, ZeRO-3 or Megatron"},
};

}  // namespace

std::vector<Problem> not_billed_yet(const TrainingPlan& plan) {
  std::vector<Problem> problems;
  for (const Limit& limit : kLimits) {
    const std::string what = limit.unbilled(plan);
    if (!what.empty()) problems.push_back({"", limit.key, what + " is not billed yet", limit.billed});
  }
  return problems;
}

}  // namespace membill
