#include "blocks/generations.h"

#include <charconv>
#include <utility>

namespace membill {
namespace {

std::pair<int, int> release_of(const std::string& version) {
  int major = 0, minor = 0;
  const char* end = version.data() + version.size();
  const auto [next, error] = std::from_chars(version.data(), end, major);
  if (error == std::errc() && next != end && *next == '.') std::from_chars(next + 1, end, minor);
  return {major, minor};
}

bool plan_is_before(const TrainingPlan& plan, const char* program, int major, int minor) {
  const auto found = plan.software.find(program);
  return found != plan.software.end() && is_before(found->second, major, minor);
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

bool is_before(const std::string& version, int major, int minor) {
  return release_of(version) < std::pair(major, minor);
}

std::string assumed_releases(const TrainingPlan& plan) {
  const bool own_model_code =
      plan.implementation == Implementation::megatron || plan.implementation == Implementation::torchtune ||
      plan.implementation == Implementation::torchtitan || plan.implementation == Implementation::litgpt;
  std::string text;
  if (plan.software.count("torch") == 0) text = "torch 2.15";
  if (plan.software.count("transformers") == 0 && !own_model_code)
    text += (text.empty() ? "" : ", ") + std::string("transformers 5.24");
  if (plan.implementation == Implementation::megatron && plan.software.count("megatron-core") == 0)
    text += (text.empty() ? "" : ", ") + std::string("megatron-core 0.16");
  const bool supervised = plan.stage == Stage::sft || plan.stage == Stage::pretrain;
  if (!supervised && plan.stage != Stage::inference && plan.software.count("trl") == 0)
    text += (text.empty() ? "" : ", ") + std::string(plan.stage == Stage::ppo ? "trl 0.24" : "trl 1.16");
  return text;
}

Generations generations(const TrainingPlan& plan) {
  Generations result;
  const bool supervised = plan.stage == Stage::sft || plan.stage == Stage::pretrain;
  if (plan_is_before(plan, "trl", 1, 0))
    result.trl = Generations::Trl::classic;
  else if (plan.software.count("trl") != 0 || !supervised)
    result.trl = Generations::Trl::fused;
  result.logits_upcast_in_model = plan_is_before(plan, "transformers", 4, 46);
  result.repeats_kv_heads = plan_is_before(plan, "transformers", 4, 54);
  result.checkpoints_need_gradient = !plan_is_before(plan, "transformers", 5, 0);
  result.gradients_stay = plan_is_before(plan, "torch", 2, 0);
  result.mean_saves_input = plan_is_before(plan, "torch", 2, 2);
  result.matmul_workspaces_outside = plan_is_before(plan, "torch", 2, 0);
  result.keeps_matmul_workspaces = plan_is_before(plan, "torch", 2, 15) && !result.matmul_workspaces_outside;
  return result;
}

}  // namespace membill
