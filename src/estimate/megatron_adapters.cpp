#include "estimate/megatron_adapters.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/adapters.h"
#include "catalog/module_names.h"
#include "estimate/rank_model.h"

namespace membill {
namespace {

struct JoinedLinear {
  std::string_view part, linear;
};

constexpr JoinedLinear kJoined[] = {
    {"q_proj", "linear_qkv"},
    {"q_proj", "linear_q_proj"},
    {"k_proj", "linear_qkv"},
    {"v_proj", "linear_qkv"},
    {"c_attn", "linear_qkv"},
    {"o_proj", "linear_proj"},
    {"attn.c_proj", "linear_proj"},
    {"q_a_proj", "linear_q_down_proj"},
    {"q_b_proj", "linear_q_up_proj"},
    {"kv_a_proj_with_mqa", "linear_kv_down_proj"},
    {"kv_b_proj", "linear_kv_up_proj"},
    {"gate_proj", "linear_fc1"},
    {"up_proj", "linear_fc1"},
    {"gate_up_proj", "linear_fc1"},
    {"c_fc", "linear_fc1"},
    {"w1", "linear_fc1"},
    {"w3", "linear_fc1"},
    {"down_proj", "linear_fc2"},
    {"mlp.c_proj", "linear_fc2"},
    {"w2", "linear_fc2"},
};

bool names(std::string_view target, const JoinedLinear& joined) {
  return target == "all-linear" || target == joined.linear || ends_with_name(target, joined.part) ||
         ends_with_name(joined.part, target);
}

}  // namespace

AdapterPlan as_megatron_adapts(const AdapterPlan& plan) {
  AdapterPlan joined = plan;
  joined.targets.clear();
  for (const JoinedLinear& row : kJoined) {
    const bool named = std::any_of(plan.targets.begin(), plan.targets.end(),
                                   [&](const std::string& target) { return names(target, row); });
    const bool known = std::find(joined.targets.begin(), joined.targets.end(), row.linear) != joined.targets.end();
    if (named && !known) joined.targets.emplace_back(row.linear);
  }
  return joined;
}

std::int64_t megatron_adapter_parameters(const ModelSpec& model, const TrainingPlan& plan) {
  TrainingPlan whole = plan;
  whole.parallel = {};
  return match_adapter_targets(rank_model(model, whole, 0), as_megatron_adapts(plan.adapter), plan.method)
      .parameters(plan.method);
}

void check_megatron_targets(const TrainingPlan& plan, Problems& problems) {
  const char *key = "adapter.targets", *hint = "all-linear, linear_qkv, linear_proj, linear_fc1, linear_fc2";
  if (plan.adapter.targets.empty()) problems.add({"", key, "Megatron's linears have no default targets", hint});
  for (const std::string& target : plan.adapter.targets) {
    AdapterPlan one;
    one.targets = {target};
    if (as_megatron_adapts(one).targets.empty())
      problems.add({"", key, quoted(target) + " is no linear of Megatron's", hint});
  }
}

}  // namespace membill
