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

}  // namespace membill::io
