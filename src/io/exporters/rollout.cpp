#include <string>

#include "io/exporters/formats.h"

namespace membill::io {

void write_rollout(const TrainingPlan& plan, const std::string& prefix, KeyWriter& writer) {
  const std::int64_t completion = plan.completion.value_or(plan.seq / 2);
  writer.set(prefix + "max_completion_length", Value::of(completion));
  if (prefix.empty()) writer.set("max_prompt_length", Value::of(plan.seq - completion));
  if (plan.generations) writer.set(prefix + "num_generations", Value::of(*plan.generations));
  if (plan.beta) writer.set(prefix + "beta", Value::of(*plan.beta));
  for (const char* key : {"steps_per_generation", "num_iterations", "use_vllm", "vllm_mode",
                          "vllm_gpu_memory_utilization", "vllm_enable_sleep_mode"})
    if (const auto found = plan.stage_args.find(key); found != plan.stage_args.end())
      writer.set(prefix + key, flag_value(found->second));
}

void write_preference_losses(const TrainingPlan& plan, const char* loss_key, KeyWriter& writer) {
  const auto value = [&](const char* key) {
    const auto found = plan.stage_args.find(key);
    return found == plan.stage_args.end() ? Value() : flag_value(found->second);
  };
  const Value likelihood = value("cpo_alpha");
  if (plan.stage == Stage::simpo) writer.set("cpo_alpha", likelihood.is_null() ? Value::of(0) : likelihood);
  if (plan.stage != Stage::dpo) return;
  if (const Value weight = value("rpo_alpha"); !weight.is_null()) writer.set("rpo_alpha", weight);
  if (const Value loss = value("loss_type"); !loss.is_null() && value_text(loss) != "ipo") writer.set(loss_key, loss);
}

}  // namespace membill::io
