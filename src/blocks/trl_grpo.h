// GRPO as TRL's GRPOTrainer runs it: what it generated is scored without gradients, then trained on.
#pragma once

#include "blocks/trl_forward.h"

namespace membill {

// _get_per_token_logps_and_entropies without gradients, as old log-probabilities and the reference's are made: a micro-batch of rows
// at a time. `counted`: completion tokens of its rows.
void grpo_score(Forward& f, const Architecture& architecture, const ReferenceModel& scored, const Tensor& ids,
                const Size& counted);

// compute_loss of a micro-batch. Source: trl 1.16 and 0.24, trainer/grpo_trainer.py.
[[nodiscard]] Tensor grpo_loss(Forward& f, const Architecture& architecture, ModelModules& policy, const Tensor& ids,
                               const Size& counted);

}  // namespace membill
