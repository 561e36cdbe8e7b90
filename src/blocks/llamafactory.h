// LLaMA-Factory's own trainers over whole logits: preference stages, KTO, and a reward model that keeps its language model's head.
#pragma once

#include "blocks/trl_forward.h"

namespace membill {

// Whether LLaMA-Factory's own trainer runs the plan's stage: a plan says so by naming its release.
[[nodiscard]] bool runs_llamafactory(const TrainingPlan& plan);

// input_ids -> loss of stages dpo, orpo, simpo, kto and reward. `reference` is null where the stage has none.
// Source: llamafactory 0.9.5 train/{dpo,kto,rm}/trainer.py, train/trainer_utils.py get_batch_logps; trl 0.24
// models/modeling_value_head.py.
[[nodiscard]] Tensor llamafactory_forward(Forward& f, const Architecture& architecture, ModelModules& policy,
                                          const ReferenceModel* reference, const Tensor& ids, const Size& counted);

}  // namespace membill
