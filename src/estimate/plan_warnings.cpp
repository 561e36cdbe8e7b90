#include "estimate/plan_warnings.h"

#include <algorithm>

#include "blocks/generations.h"
#include "blocks/quantized.h"
#include "blocks/stage_args.h"
#include "blocks/trl_liger.h"
#include "blocks/vision.h"
#include "estimate/engines/placement.h"
#include "estimate/stage_run.h"
#include "membill/catalog.h"

namespace membill {
namespace {

void warn_of_positions(const ModelSpec& model, const TrainingPlan& plan, std::vector<std::string>& warnings) {
  if (model.max_positions <= 0 || plan.seq <= model.max_positions) return;
  const std::string excess =
      "seq " + std::to_string(plan.seq) + " exceeds the model's " + std::to_string(model.max_positions) + " positions";
  if (model.position == PositionKind::learned) {
    warnings.push_back(excess + ": its position table has no row for them, a real run stops with an index error");
  } else if (model.position == PositionKind::rotary) {
    warnings.push_back(excess + ": the memory is right, the model was not trained for it");
  }
}

void warn_of_linear_attention(const ModelSpec& model, const TrainingPlan& plan, std::vector<std::string>& warnings) {
  bool linear = false;
  for (const Section& section : model.sections)
    for (const LayerKind& kind : section.kinds) linear |= kind.linear_attention.has_value();
  if (linear && plan.implementation == Implementation::hf && plan.stage != Stage::inference)
    warnings.push_back(
        "Gated DeltaNet is billed as PyTorch's operators run it, an upper bound: flash-linear-attention and "
        "causal_conv1d, where they are installed, keep less");
}

// transformers 5.24 utils hub_kernels.py use_kernel_func_from_hub_with_fallback.
void warn_of_state_space(const ModelSpec& model, const TrainingPlan& plan, std::vector<std::string>& warnings) {
  bool spaces = false;
  for (const Section& section : model.sections)
    for (const LayerKind& kind : section.kinds) spaces |= kind.state_space.has_value();
  if (spaces && plan.stage != Stage::inference)
    warnings.push_back(
        "Mamba layers are billed as PyTorch's operators run them, which Transformers does where mamba-ssm and "
        "causal-conv1d are not installed: an upper bound, their kernels keep far less");
}

// What stays whole on every rank although the engine shards.
void warn_of_whole_tensors(const TrainingPlan& plan, std::vector<std::string>& warnings) {
  const bool fsdp = (plan.engine == Engine::fsdp || plan.engine == Engine::fsdp2) && shards_parameters(plan);
  if (fsdp && is_4bit(plan.weights) && !shards_codes(plan) && plan.implementation != Implementation::torchtune)
    warnings.push_back(
        "4-bit weights stored as uint8 stay whole on every rank: sharding.quant_storage bf16 lets FSDP cut them");
  if (shards_parameters(plan) && codes_are_buffers(plan))
    warnings.push_back("packed weights of GPTQ and AWQ are buffers, which stay whole on every rank");
  if (plan.engine == Engine::deepspeed && (plan.sharding.zero == 1 || plan.sharding.zero == 2) &&
      weight_format(plan.weights).quantized)
    warnings.push_back("ZeRO below stage 3 keeps the quantised weights whole on every rank");
  if (runs_mics(plan) && plan.loop == Loop::trainer)
    warnings.push_back(
        "MiCS needs a model that is built under deepspeed.zero.MiCS_Init: Transformers' from_pretrained builds it "
        "under "
        "deepspeed.zero.Init, and DeepSpeed then stops");
  const bool names_nvme =
      plan.sharding.offload == "nvme" || engine_word(plan, "offload_optimizer_device", "") == "nvme";
  if (plan.engine == Engine::deepspeed && plan.sharding.zero < 3 && plan.sharding.offload != "none" && names_nvme)
    warnings.push_back("below ZeRO-3 DeepSpeed keeps what is offloaded to NVMe in host memory");
  if (fsdp && plan.accumulate > 1 && engine_flag(plan, "no_sync", plan.loop == Loop::trainer))
    warnings.push_back(
        "gradients of all parameters stay whole on every rank between the micro-batches of a step, as accelerate "
        "accumulates without reducing (sharding.no_sync false: it reduces each time)");
}

void warn_of_adam(const TrainingPlan& plan, std::vector<std::string>& warnings) {
  if (plan.engine == Engine::megatron && plan.optimizer_impl == OptimizerImpl::foreach)
    warnings.push_back(
        "optimizer_impl foreach is PyTorch's Adam, which Megatron takes without Apex and Transformer Engine; their "
        "FusedAdam has no temporaries: optimizer_impl fused");
}

void warn_of_whole_experts(const ModelSpec& model, const TrainingPlan& plan, std::vector<std::string>& warnings) {
  const ParallelPlan& p = plan.parallel;
  const bool experts = std::any_of(model.sections.begin(), model.sections.end(), [](const Section& section) {
    return std::any_of(section.kinds.begin(), section.kinds.end(),
                       [](const LayerKind& kind) { return kind.moe.has_value(); });
  });
  if (plan.engine == Engine::megatron && experts && p.tp > 1 && p.ep == 1 && p.expert_tp == 1)
    warnings.push_back(
        "parallel.expert_tp 1 without expert parallelism: experts stay whole on every tensor-parallel rank, and their "
        "states are shared among the data-parallel ranks only (Megatron's default is expert_tp = tp)");
}

void warn_of_stages(const ModelSpec& model, const TrainingPlan& plan, std::vector<std::string>& warnings) {
  if (plan.engine == Engine::megatron && plan.parallel.pp > 1 && model.tied_embeddings)
    warnings.push_back(
        "the embedding is tied to the head: the first and the last pipeline stage each hold the matrix with its "
        "gradient and states");
}

void warn_of_images(const ModelSpec& model, const TrainingPlan& plan, std::vector<std::string>& warnings) {
  if (!model.vision || plan.vision.images > 0) return;
  warnings.push_back(
      "vision_config: its weights are counted, untrained; what images need beside their tokens is not counted" +
      std::string(has_tower_program(*model.vision) ? ": --images says how many a sequence has" : ""));
}

}  // namespace

std::vector<std::string> plan_warnings(const ModelSpec& model, const TrainingPlan& plan) {
  std::vector<std::string> warnings;
  warn_of_images(model, plan, warnings);
  warn_of_positions(model, plan, warnings);
  warn_of_whole_tensors(plan, warnings);
  warn_of_stages(model, plan, warnings);
  warn_of_whole_experts(model, plan, warnings);
  warn_of_adam(plan, warnings);
  if (plan.implementation == Implementation::torchtitan && plan.engine == Engine::ddp)
    warnings.push_back(
        "torchtitan replicates by PyTorch's replicate(), which is DDP with buckets of 100 MB: billed as DDP, not "
        "measured");
  if (plan.checkpointing.offload && plan.checkpointing.mode == Checkpointing::none && !saves_on_host(plan))
    warnings.push_back(
        "checkpointing.offload without checkpoints is billed of TRL's SFT on one card or with replicas: here what is "
        "kept is billed on the card");
  warn_of_linear_attention(model, plan, warnings);
  warn_of_state_space(model, plan, warnings);
  if (plan.precision == Precision::amp_bf16 && plan.weights == WeightFormat::fp16) {
    warnings.push_back("precision amp-bf16 over fp16 weights mixes two 16-bit formats");
  }
  if (plan.precision == Precision::amp_fp16 && plan.weights == WeightFormat::fp16 && plan.method == Method::full) {
    warnings.push_back("PyTorch's gradient scaler refuses fp16 gradients: amp-fp16 needs fp32 weights to train whole");
  }
  return warnings;
}

}  // namespace membill
