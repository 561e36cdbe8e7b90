#include "estimate/input_gradient.h"

#include "blocks/generations.h"
#include "estimate/parameters.h"

namespace membill {

bool input_needs_gradient(const TrainingPlan& plan) {
  const Generations code = generations(plan);
  if (plan.checkpointing.mode == Checkpointing::none || plan.implementation == Implementation::torchtune ||
      plan.implementation == Implementation::torchtitan || plan.implementation == Implementation::litgpt)
    return plan.engine == Engine::megatron && has_adapters(plan);
  const bool transformers = plan.implementation != Implementation::megatron;
  // peft/utils/other.py prepare_model_for_kbit_training, as TRL before 1.0 calls it.
  if (!code.checkpoints_need_gradient && code.trl == Generations::Trl::classic && is_cast_for_kbit(plan.weights) &&
      !plan.checkpointing.reentrant)
    return false;
  return has_adapters(plan) || (transformers && code.checkpoints_need_gradient);
}

}  // namespace membill
