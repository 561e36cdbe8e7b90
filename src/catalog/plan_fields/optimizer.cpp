#include "catalog/plan_fields/row.h"
#include "membill/problem.h"

namespace membill {
namespace {

using Plan = TrainingPlan;

std::string read_optimizer(const Value& value, Plan& plan, std::string& hint) {
  if (!value.is_string())
    return hint = "see membill optimizers", "needs the name of an optimizer, not " + describe(value);
  const OptimizerRow* row = find_optimizer(value.as_string());
  if (row == nullptr) {
    std::vector<std::string_view> words;
    for (const OptimizerRow& known : optimizers()) {
      words.push_back(known.name);
      words.insert(words.end(), known.aliases.begin(), known.aliases.end());
      words.insert(words.end(), known.fused_aliases.begin(), known.fused_aliases.end());
    }
    hint = nearest_word(value.as_string(), words);
    if (hint.empty()) hint = "see membill optimizers";
    return "has the unknown value " + quoted(value.as_string());
  }
  plan.optimizer = row->name;
  if (names_fused_optimizer(value.as_string())) plan.optimizer_impl = OptimizerImpl::fused;
  return {};
}

}  // namespace

std::vector<PlanFieldRow> optimizer_fields() {
  PlanFieldRow arguments = make_row(
      {"optimizer_args", "", "further arguments of the optimizer: rank, update_proj_gap, min_8bit_size"}, "a map",
      [](const Value& value, Plan& plan, std::string& hint) {
        return read_text_map(value, {}, plan.optimizer_args, hint);
      },
      write_field<&Plan::optimizer_args>);
  arguments.free_map = true;
  return {
      make_row({"optimizer", "--optimizer", "a row of membill optimizers, or Hugging Face's name of it"}, "name",
               read_optimizer, [](const Plan& plan) { return to_json(plan.optimizer); }),
      word_row<kOptimizerImplWords, &Plan::optimizer_impl>(
          {"optimizer_impl", "--optimizer-impl", "how PyTorch runs the step"}),
      std::move(arguments),
      bool_row<&Plan::optimizer_in_backward>({"optimizer_in_backward", "--optimizer-in-backward",
                                              "each parameter is updated as soon as its gradient is there"}),
  };
}

}  // namespace membill
