#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/release.h"
#include "blocks/architecture.h"
#include "blocks/generations.h"
#include "blocks/megatron_latent.h"
#include "blocks/megatron_parallel.h"
#include "blocks/megatron_router.h"
#include "blocks/sequence_spread.h"
#include "catalog/plan_fields/words.h"
#include "estimate/checks.h"
#include "estimate/engines/placement.h"
#include "estimate/rank_model.h"
#include "estimate/sequence_checks.h"
#include "estimate/split_model.h"
#include "membill/catalog.h"

namespace membill {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

void needs_engine(const TrainingPlan& plan, const char* key, const std::string& what, const char* engines,
                  Problems& problems) {
  problems.add({"", key, what + " needs another engine than " + std::string(word_of(kEngineWords, plan.engine)),
                std::string("engine ") + engines});
}

// `whole` must be a multiple of `degree`.
void divides(std::int64_t degree, std::int64_t whole, const char* key, const std::string& what, Problems& problems) {
  if (degree < 1 || whole < 1 || whole % degree == 0) return;
  problems.add({"", key, std::to_string(degree) + " does not divide the " + std::to_string(whole) + " " + what, ""});
}

const MoeShape* first_moe(const ModelSpec& model) {
  for (const Section& section : model.sections) {
    for (const LayerKind& kind : section.kinds) {
      if (kind.moe) return &*kind.moe;
    }
  }
  return nullptr;
}

// Types whose linears AutoTP divides one by one.
void check_split_layers(const ModelSpec& model, const TrainingPlan& plan, Problems& problems) {
  constexpr std::array kTypes{std::string_view("llama"), std::string_view("mistral"), std::string_view("qwen2"),
                              std::string_view("qwen3")};
  if (!splits_layers(plan)) return;
  if (std::find(kTypes.begin(), kTypes.end(), model.model_type) == kTypes.end())
    problems.add({"", "parallel.tp", "AutoTP is not billed for model type " + model.model_type, "parallel.tp 1"});
  divides(plan.parallel.tp, model.vocab, "parallel.tp", "rows of the vocabulary", problems);
}

void check_tensor_parallel(const ModelSpec& model, const TrainingPlan& plan, Problems& problems) {
  const ParallelPlan& p = plan.parallel;
  if (p.sp && p.tp == 1)
    problems.add({"", "parallel.sp", "sequence parallelism needs tensor parallelism", "parallel.tp 2"});
  if (const LayerKind* layer = first_layer(model)) {
    divides(p.tp, layer->attention.heads, "parallel.tp", "attention heads", problems);
    divides(p.tp, layer->attention.kv_heads, "parallel.tp", "key and value heads", problems);
    divides(p.tp, layer->mlp.intermediate, "parallel.tp", "columns of the MLP", problems);
    divides(p.ulysses, layer->attention.heads, "parallel.ulysses", "attention heads", problems);
  }
  if (!runs_megatron_layers(plan) || p.tp < 1 || plan.vocab_pad_to.value_or(1) < 1) return;
  const std::int64_t rows = padded_vocabulary(model, plan);
  if (rows % p.tp != 0)
    problems.add({"", "parallel.tp",
                  std::to_string(p.tp) + " does not divide the " + std::to_string(rows) + " rows of the vocabulary",
                  "vocab_pad_to " + std::to_string(checked_mul(128, p.tp))});
  if (p.sp && p.cp >= 1) divides(p.tp, plan.seq / p.cp, "parallel.sp", "tokens of a sequence", problems);
}

// Stages of equal length, but for a first and a last one whose lengths are given.
void check_stages(const ModelSpec& model, const TrainingPlan& plan, Problems& problems) {
  const ParallelPlan& p = plan.parallel;
  const StageLayers stages = layers_of_stages(model.layers, plan);
  const bool given = engine_number(plan, "decoder_first_pipeline_num_layers", 0) > 0 ||
                     engine_number(plan, "decoder_last_pipeline_num_layers", 0) > 0;
  if (!given) {
    if (p.pp > 1 && model.layers % p.pp != 0)
      problems.add({"", "parallel.pp",
                    std::to_string(p.pp) + " does not divide the " + std::to_string(model.layers) + " layers",
                    "sharding.decoder_first_pipeline_num_layers, sharding.decoder_last_pipeline_num_layers"});
    return;
  }
  if (stages.middle < 1 && p.pp > 2)
    problems.add({"", "parallel.pp",
                  "the layers between the first and the last stage do not come out even: " +
                      std::to_string(model.layers) + " layers, " + std::to_string(p.pp) + " stages",
                  ""});
}

// megatron-core 0.16 transformer_block.py _checkpointed_forward: the last group of a uniform recompute is as long as the others.
void check_groups(const ModelSpec& model, const TrainingPlan& plan, Problems& problems) {
  const CheckpointPlan& c = plan.checkpointing;
  const std::int64_t group = c.layers.value_or(1), chunks = plan.parallel.virtual_pp;
  if (plan.engine != Engine::megatron || c.mode != Checkpointing::full || c.method == "block") return;
  if (group < 1 || chunks < 1 || plan.parallel.pp < 1) return;
  const StageLayers stages = layers_of_stages(model.layers, plan);
  for (const std::int64_t layers : {stages.first, stages.middle, stages.last})
    if (layers > 0 && layers % chunks == 0 && layers / chunks % group != 0)
      return problems.add(
          {"", "checkpointing.layers",
           std::to_string(group) + " does not divide the " + std::to_string(layers / chunks) +
               " layers that a stage runs at once: Megatron's uniform recompute runs past the last of them",
           "method block"});
}

void check_pipeline(const ModelSpec& model, const TrainingPlan& plan, Problems& problems) {
  const ParallelPlan& p = plan.parallel;
  if (p.virtual_pp > 1 && p.pp == 1)
    problems.add({"", "parallel.virtual_pp", "needs a pipeline of two stages or more", "parallel.pp 2"});
  if (p.pp < 1 || p.virtual_pp < 1 || model.layers < 1) return;
  check_stages(model, plan, problems);
  if (p.virtual_pp == 1 || p.pp == 1) return;
  const StageLayers stages = layers_of_stages(model.layers, plan);
  for (const std::int64_t layers : {stages.first, stages.middle, stages.last}) {
    if (layers % p.virtual_pp == 0) continue;
    return divides(p.virtual_pp, layers, "parallel.virtual_pp", "layers of a stage", problems);
  }
  if (plan.accumulate < p.pp)
    problems.add({"", "accumulate",
                  "an interleaved pipeline needs as many micro-batches as stages, " + std::to_string(p.pp) + ", not " +
                      std::to_string(plan.accumulate),
                  "parallel.virtual_pp 1"});
}

// What Megatron's GPT is not.
void check_megatron(const ModelSpec& model, const TrainingPlan& plan, Problems& problems) {
  const bool layers = plan.implementation == Implementation::megatron;
  if (!runs_megatron_layers(plan)) return;
  if (plan.engine != Engine::megatron && plan.engine != Engine::deepspeed)
    problems.add({"", "implementation", "megatron needs engine megatron or deepspeed", "engine megatron"});
  if (plan.engine == Engine::deepspeed && first_moe(model) != nullptr)
    problems.add({"", "implementation", "Megatron's experts under DeepSpeed are not modelled", "engine megatron"});
  if (!layers && plan.implementation != Implementation::hf)
    problems.add({"", "implementation",
                  std::string(word_of(kImplementationWords, plan.implementation)) + " does not run under Megatron",
                  "megatron"});
  if (!model.dimensions_known || find_architecture(model.model_type, Implementation::megatron) == nullptr)
    problems.add({"", "engine", "Megatron's GPT is not modelled for model type " + model.model_type, "engine fsdp2"});
}

// Megatron's own conditions (megatron-core 0.16 transformer/transformer_config.py, training/arguments.py).
void check_saved_activations(const TrainingPlan& plan, Problems& problems) {
  if (!engine_flag(plan, "distribute_saved_activations", false)) return;
  const char* key = "sharding.distribute_saved_activations";
  if (plan.engine != Engine::megatron) return needs_engine(plan, key, "keeping them in parts", "megatron", problems);
  if (plan.parallel.tp == 1) problems.add({"", key, "needs tensor parallelism", "parallel.tp 2"});
  if (plan.parallel.sp) problems.add({"", key, "does not go with sequence parallelism", "parallel.sp false"});
  if (plan.checkpointing.mode != Checkpointing::full)
    problems.add({"", key, "is for full recompute only", "checkpointing full"});
}

// training/arguments.py: both are for the distributed optimizer; a cut fraction is for an offloaded one.
void check_optimizer_place(const TrainingPlan& plan, Problems& problems) {
  if (plan.engine != Engine::megatron) {
    for (const char* name : {"mtp_num_layers", "optimizer_offload_fraction"})
      if (engine_number(plan, name, 0) > 0)
        needs_engine(plan, ("sharding." + std::string(name)).c_str(), "Megatron's key", "megatron", problems);
    return;
  }
  const bool offloads = plan.sharding.offload == "optimizer";
  const bool precise = engine_flag(plan, "use_precision_aware_optimizer", false);
  if (plan.sharding.zero != 1 && (offloads || precise))
    problems.add({"", offloads ? "sharding.offload" : "sharding.use_precision_aware_optimizer",
                  "needs Megatron's distributed optimizer", "sharding.zero 1"});
  const double fraction = engine_number(plan, "optimizer_offload_fraction", 1.0);
  if (fraction > 1)
    problems.add({"", "sharding.optimizer_offload_fraction", "is a share of the optimizer, at most 1", "1.0"});
}

// DeepSpeed's own conditions (deepspeed 0.19 checkpointing.py configure, get_partition_size, partition_activations).
void check_contiguous(const ModelSpec& model, const TrainingPlan& plan, Problems& problems) {
  const char* key = "sharding.contiguous_memory_optimization";
  if (!engine_flag(plan, "contiguous_memory_optimization", false)) return;
  if (!engine_flag(plan, "partition_activations", false))
    problems.add({"", key, "is for partitioned activations", "sharding.partition_activations true"});
  const auto buffers = static_cast<std::int64_t>(engine_number(plan, "number_checkpoints", 0));
  if (plan.checkpointing.every >= 1 && buffers < model.layers / plan.checkpointing.every)
    problems.add({"", "sharding.number_checkpoints",
                  std::to_string(buffers) + " buffers are too few for " +
                      std::to_string(model.layers / plan.checkpointing.every) + " checkpointed layers",
                  ""});
}

void check_deepspeed_checkpoint(const ModelSpec& model, const TrainingPlan& plan, Problems& problems) {
  const bool parts = engine_flag(plan, "partition_activations", false);
  const char* key = parts ? "sharding.partition_activations" : "sharding.cpu_checkpointing";
  check_contiguous(model, plan, problems);
  if (!parts && !engine_flag(plan, "cpu_checkpointing", false)) return;
  if (plan.engine != Engine::deepspeed) return needs_engine(plan, key, "DeepSpeed's checkpoint", "deepspeed", problems);
  if (plan.checkpointing.mode != Checkpointing::full)
    problems.add({"", key, "is for checkpointing full only", "checkpointing full"});
  if (plan.checkpointing.offload)
    problems.add(
        {"", "checkpointing.offload", "DeepSpeed's function has a key of its own", "sharding.cpu_checkpointing true"});
  if (has_own_model_code(plan) && plan.implementation != Implementation::megatron)
    problems.add(
        {"", key,
         std::string(word_of(kImplementationWords, plan.implementation)) + " does not call DeepSpeed's checkpoint",
         "implementation hf"});
  const bool in_range = plan.batch >= 1 && plan.seq >= 1 && plan.batch <= kMostElements / plan.seq;
  if (parts && in_range && plan.parallel.tp >= 1 && model.hidden > 0 && plan.batch * plan.seq % plan.parallel.tp != 0)
    divides(plan.parallel.tp, model.hidden, "parallel.tp", "columns of a layer's input", problems);
}

void check_capacity(const TrainingPlan& plan, Problems& problems) {
  if (!engine_flag(plan, "moe_pad_expert_input_to_capacity", false)) return;
  const char* key = "sharding.moe_pad_expert_input_to_capacity";
  if (engine_number(plan, "moe_expert_capacity_factor", 0) <= 0)
    problems.add({"", key, "needs a capacity", "sharding.moe_expert_capacity_factor 1.0"});
  if (engine_word(plan, "moe_token_dispatcher_type", "alltoall") == "allgather")
    problems.add({"", key, "the all-gather dispatcher does not pad", "sharding.moe_token_dispatcher_type alltoall"});
}

// megatron-core 0.16 transformer/transformer_config.py: what else recompute_modules need.
void check_recomputed_modules(const ModelSpec& model, const TrainingPlan& plan, Problems& problems) {
  if (plan.engine != Engine::megatron) return;
  if (recomputes_module(plan, "moe_act") && !expert_plan(plan).grouped)
    problems.add(
        {"", "checkpointing", "moe_act is recomputed in grouped experts only", "sharding.moe_grouped_gemm true"});
  if (recomputes_module(plan, "mla_up_proj") && !has_latent_attention(model))
    problems.add({"", "checkpointing", "the model has no latent attention whose mla_up_proj could be recomputed",
                  "selective:core_attn"});
}

void check_experts(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware, Problems& problems) {
  const ParallelPlan& p = plan.parallel;
  const MoeShape* moe = first_moe(model);
  if (moe != nullptr && plan.engine == Engine::megatron && p.tp > 1 && !p.sp)
    problems.add(
        {"", "parallel.sp", "experts beside tensor parallelism need sequence parallelism", "parallel.sp true"});
  if (p.ep == 1 && p.expert_tp == 1) return;
  if (moe == nullptr) {
    if (p.ep > 1) problems.add({"", "parallel.ep", "the model has no experts", "parallel.ep 1"});
    if (p.expert_tp > 1) problems.add({"", "parallel.expert_tp", "the model has no experts", "parallel.expert_tp 1"});
    return;
  }
  divides(p.ep, moe->experts, "parallel.ep", "experts", problems);
  divides(p.expert_tp, moe->intermediate, "parallel.expert_tp", "columns of an expert", problems);
  const bool in_range = p.pp >= 1 && p.ep >= 1 && p.expert_tp >= 1 && p.ep <= hardware.count &&
                        p.expert_tp <= hardware.count && hardware.count % p.pp == 0;
  if (plan.engine == Engine::megatron && !(in_range && hardware.count / p.pp % (p.ep * p.expert_tp) == 0))
    problems.add({"", "parallel.ep",
                  "ep x expert_tp, " + std::to_string(p.ep) + " x " + std::to_string(p.expert_tp) +
                      ", does not divide the cards of a pipeline stage",
                  ""});
}

// Cards of one replica of the model, or 0 when they exceed any job.
std::int64_t replica_cards(const ParallelPlan& p) {
  constexpr std::int64_t kMost = 1'000'000'000;
  std::int64_t cards = 1;
  for (const std::int64_t degree : {p.tp, p.pp, p.cp, p.ulysses}) {
    if (degree < 1) return 1;
    if (cards > kMost / degree) return 0;
    cards *= degree;
  }
  return cards;
}

// deepspeed 0.18 runtime/zero/mics.py; gone in 0.19.8.
void check_mics(const TrainingPlan& plan, const Hardware& hardware, Problems& problems) {
  const auto ranks = static_cast<std::int64_t>(engine_number(plan, "mics_shard_size", 0));
  if (ranks < 1) return;
  const char* key = "sharding.mics_shard_size";
  if (!runs_mics(plan)) return problems.add({"", key, "is for ZeRO-3 only", "engine deepspeed, sharding.zero 3"});
  const auto release = plan.software.find("deepspeed");
  if (release != plan.software.end() && !is_before(release->second, 0, 19, 8))
    problems.add({"", key, "DeepSpeed " + release->second + " no longer has MiCS", "sharding.zero_hpz_partition_size"});
  divides(ranks, hardware.count, key, "cards", problems);
  if (plan.sharding.offload != "none" && ranks < hardware.count)
    problems.add({"", "sharding.offload", "MiCS refuses to offload", "sharding.offload none"});
  if (engine_number(plan, "zero_hpz_partition_size", 1) > 1)
    problems.add({"", key, "does not go with a secondary partition", "sharding.zero_hpz_partition_size 1"});
}

void check_cards(const TrainingPlan& plan, const Hardware& hardware, Problems& problems) {
  const std::int64_t count = hardware.count;
  if (count < 1) problems.add({"", "hardware.count", "must be at least 1, not " + std::to_string(count), ""});
  if (hardware.nodes < 1)
    problems.add({"", "hardware.nodes", "must be at least 1, not " + std::to_string(hardware.nodes), ""});
  if (hardware.others_use < Bytes(0)) problems.add({"", "hardware.others_use", "must not be negative", ""});
  if (count < 1 || hardware.nodes < 1) return;
  divides(hardware.nodes, count, "hardware.nodes", count == 1 ? "card" : "cards", problems);
  const std::int64_t replica = replica_cards(plan.parallel);
  if (replica == 0 || count % replica != 0) {
    problems.add({"", "hardware.count",
                  std::to_string(count) + (count == 1 ? " card is" : " cards are") +
                      " no multiple of tp x pp x cp x ulysses" + (replica == 0 ? "" : ", " + std::to_string(replica)),
                  ""});
  } else if (plan.sharding.shard_group && *plan.sharding.shard_group >= 1) {
    divides(*plan.sharding.shard_group, count / replica * sequence_ranks(plan), "sharding.shard_group",
            "data-parallel cards", problems);
  }
  divides(static_cast<std::int64_t>(engine_number(plan, "zero_hpz_partition_size", 1)), count,
          "sharding.zero_hpz_partition_size", "cards", problems);
  check_mics(plan, hardware, problems);
  if (plan.engine == Engine::torch && count > 1 && replica == 1) {
    problems.add({"", "hardware.count", "engine torch runs on one card, not " + std::to_string(count), "engine ddp"});
  }
}

// deepspeed 0.19 runtime/engine.py _configure_distributed_model: without a 16-bit section every parameter has to be fp32.
void check_torch_autocast(const TrainingPlan& plan, Problems& problems) {
  if (!engine_flag(plan, "torch_autocast", false)) return;
  const char* key = "sharding.torch_autocast";
  if (plan.engine != Engine::deepspeed)
    return needs_engine(plan, key, "the section torch_autocast", "deepspeed", problems);
  if (!regime(plan.precision).autocast)
    problems.add({"", key, "is for autocast, not " + std::string(regime(plan.precision).name), "precision amp-bf16"});
  if (plan.weights != WeightFormat::fp32)
    problems.add({"", key, "needs fp32 weights, not " + std::string(weight_format(plan.weights).name), "weights fp32"});
}

void check_trained_rows(const TrainingPlan& plan, Problems& problems) {
  const bool fails = shards_parameters(plan) && plan.engine != Engine::fsdp2;
  if (plan.adapter.trainable_tokens == 0 || !fails) return;
  const bool zero3 = plan.engine == Engine::deepspeed;
  // tuners/trainable_tokens/layer.py update_layer; torch/distributed/fsdp/_flat_param.py _validate_tensors_to_flatten
  problems.add({"", "adapter.trainable_tokens",
                zero3 ? "PEFT reads rows of the embedding, of which ZeRO-3 has left none"
                      : "FSDP1 does not flatten them with the embedding, which is of another type",
                zero3 ? "engine fsdp2, or sharding.zero 2" : "engine fsdp2"});
}

}  // namespace

void check_sharding(const TrainingPlan& plan, Problems& problems) {
  const ShardingPlan& s = plan.sharding;
  const bool single = plan.engine == Engine::torch || plan.engine == Engine::ddp;
  if (s.zero > 0 && plan.engine != Engine::deepspeed && plan.engine != Engine::megatron) {
    needs_engine(plan, "sharding.zero", "ZeRO", "deepspeed", problems);
  } else if (s.zero > 1 && plan.engine == Engine::megatron) {
    problems.add({"", "sharding.zero", "Megatron shards the optimizer only", "sharding.zero 1"});
  }
  if (s.fsdp != "none" && !is_fsdp(plan)) needs_engine(plan, "sharding.fsdp", s.fsdp, "fsdp", problems);
  if (s.fsdp == "none" && is_fsdp(plan))
    problems.add({"", "sharding.fsdp", "none means no FSDP, but the engine is FSDP", "engine ddp, or fsdp full_shard"});
  if (s.shard_group && s.fsdp != "hybrid_shard") {
    problems.add({"", "sharding.shard_group", "is for fsdp hybrid_shard only", "sharding.fsdp hybrid_shard"});
  }
  if (s.offload != "none" && single) {
    needs_engine(plan, "sharding.offload", "offloading " + s.offload, "deepspeed", problems);
  } else if (s.offload.find("param") != std::string::npos && plan.engine == Engine::deepspeed && s.zero != 3) {
    problems.add({"", "sharding.offload", "parameters can be offloaded by ZeRO-3 only", "sharding.zero 3"});
  }
  if (plan.engine == Engine::deepspeed && s.zero == 0 && accumulation_dtype(plan) != deepspeed_dtype(plan))
    problems.add({"", "sharding.grad_accum_dtype",
                  "DeepSpeed refuses " + engine_word(plan, "grad_accum_dtype", "") +
                      " beside another type of weights without ZeRO",
                  "sharding.zero 1"});
  check_torch_autocast(plan, problems);
  check_trained_rows(plan, problems);
  const ParallelPlan& p = plan.parallel;
  if (p.tp > 1 && single) needs_engine(plan, "parallel.tp", "tensor parallelism", "megatron", problems);
  if (p.pp > 1 && plan.engine != Engine::megatron)
    needs_engine(plan, "parallel.pp", "a pipeline", "megatron", problems);
  if (p.cp > 1 && plan.engine == Engine::torch)
    needs_engine(plan, "parallel.cp", "context parallelism", "megatron", problems);
  if (p.ep > 1 && single) needs_engine(plan, "parallel.ep", "expert parallelism", "megatron", problems);
}

void check_degrees(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware, Problems& problems) {
  check_tensor_parallel(model, plan, problems);
  check_split_layers(model, plan, problems);
  check_pipeline(model, plan, problems);
  check_megatron(model, plan, problems);
  check_experts(model, plan, hardware, problems);
  check_capacity(plan, problems);
  check_recomputed_modules(model, plan, problems);
  check_groups(model, plan, problems);
  check_saved_activations(plan, problems);
  check_optimizer_place(plan, problems);
  check_deepspeed_checkpoint(model, plan, problems);
  check_sequence_ranks(model, plan, problems);
  check_cards(plan, hardware, problems);
}

}  // namespace membill
