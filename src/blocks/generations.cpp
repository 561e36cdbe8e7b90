#include "blocks/generations.h"

#include "base/release.h"
#include "blocks/quantized.h"
#include "blocks/stage_args.h"

namespace membill {
namespace {

bool plan_is_before(const TrainingPlan& plan, const char* program, int major, int minor, int patch = 0) {
  const auto found = plan.software.find(program);
  return found != plan.software.end() && is_before(found->second, major, minor, patch);
}

}  // namespace

bool has_pairs(Stage stage) {
  return stage == Stage::dpo || stage == Stage::orpo || stage == Stage::simpo || stage == Stage::reward;
}

bool joins_rows(const TrainingPlan& plan) {
  if (plan.padding_free || !plan.packing) return plan.padding_free;
  const auto strategy = plan.stage_args.find("packing_strategy");
  return strategy != plan.stage_args.end() && strategy->second.starts_with("bfd");
}

bool casts_ends_to_16bit(const TrainingPlan& plan) {
  const Generations::Trl trl = generations(plan).trl;
  const bool experimental = plan.stage == Stage::orpo || plan.stage == Stage::simpo;
  return is_4bit(plan.weights) &&
         (trl == Generations::Trl::classic || (trl == Generations::Trl::fused && experimental));
}

bool has_own_model_code(const TrainingPlan& plan) {
  return plan.implementation == Implementation::megatron || plan.implementation == Implementation::torchtune ||
         plan.implementation == Implementation::torchtitan || plan.implementation == Implementation::litgpt;
}

std::string assumed_releases(const TrainingPlan& plan) {
  std::string text;
  if (plan.software.count("torch") == 0) text = "torch 2.15";
  if (plan.software.count("transformers") == 0 && !has_own_model_code(plan))
    text += (text.empty() ? "" : ", ") + std::string("transformers 5.24");
  if (plan.implementation == Implementation::megatron && plan.software.count("megatron-core") == 0)
    text += (text.empty() ? "" : ", ") + std::string("megatron-core 0.16");
  if (is_trl_stage(plan.stage) && plan.software.count("trl") == 0 && plan.implementation != Implementation::torchtune)
    text += (text.empty() ? "" : ", ") + std::string(plan.stage == Stage::ppo ? "trl 0.24" : "trl 1.16");
  return text;
}

Generations generations(const TrainingPlan& plan) {
  Generations result;
  // No trainer of TRL's.
  const bool elsewhere = plan.stage == Stage::classification || plan.implementation == Implementation::torchtune;
  if (!elsewhere && plan_is_before(plan, "trl", 1, 0))
    result.trl = Generations::Trl::classic;
  else if (!elsewhere && (plan.software.count("trl") != 0 || !is_supervised(plan)))
    result.trl = Generations::Trl::fused;
  result.logits_upcast_in_model = plan_is_before(plan, "transformers", 4, 46);
  result.logits_shifted_in_loss = !result.logits_upcast_in_model && plan_is_before(plan, "transformers", 4, 49);
  result.repeats_kv_heads = plan_is_before(plan, "transformers", 4, 54);
  result.contiguous_heads = !plan_is_before(plan, "transformers", 4, 48) && plan_is_before(plan, "transformers", 4, 56);
  result.checkpoints_need_gradient = !plan_is_before(plan, "transformers", 5, 0);
  result.quantizes_from_half = plan_is_before(plan, "bitsandbytes", 0, 43);
  result.holds_4bit_inputs = plan_is_before(plan, "bitsandbytes", 0, 43, 2);
  result.joins_experts = !plan_is_before(plan, "transformers", 5, 0);
  result.checkpoints_around_wrappers = plan_is_before(plan, "transformers", 4, 53);
  result.gradients_stay = plan_is_before(plan, "torch", 2, 0);
  result.softmax_saves_input = plan_is_before(plan, "torch", 1, 11);
  result.fuses_rms_norm = !plan_is_before(plan, "torch", 2, 9);
  result.mean_saves_input = plan_is_before(plan, "torch", 2, 2);
  result.matmul_workspaces_outside = plan_is_before(plan, "torch", 2, 0);
  result.keeps_matmul_workspaces = plan_is_before(plan, "torch", 2, 15) && !result.matmul_workspaces_outside;
  return result;
}

}  // namespace membill
