// DPO and KTO through Liger's fused loss: use_liger_loss of TRL before 1.0 (GRPO's: trl_liger_grpo.h).
#pragma once

#include "blocks/trl_forward.h"

namespace membill {

// By stage_args.use_liger_loss; where that is not said, implementation liger means it: TRL's documentation turns Liger on by this
// argument in DPO. The layers are then Transformers' own.
[[nodiscard]] bool runs_liger_loss(const TrainingPlan& plan);

// trl 0.24 trainer/dpo_trainer.py and kto_trainer.py _compute_loss_liger: the base models without autocast, the reference's with
// gradients, then one compiled forward and backward of head and loss a pair, or a sequence.
[[nodiscard]] Tensor liger_preference(Forward& f, const Architecture& architecture, ModelModules& policy,
                                      const ReferenceModel* reference, const Tensor& ids, const Size& counted);

}  // namespace membill
