// torchtune's DPO recipes: whole logits in fp32, of chosen and rejected rows in one forward.
#pragma once

#include "blocks/trl_forward.h"

namespace membill {

[[nodiscard]] bool runs_torchtune_pairs(const TrainingPlan& plan);

// Whether the recipe's loop holds the reference's logits until the next pair's are there (the recipes with adapters bind them to `_`).
[[nodiscard]] bool holds_reference_logits(const TrainingPlan& plan);

// input_ids -> loss. Source: torchtune 0.6.1 recipes/{lora_dpo_single_device,lora_dpo_distributed,full_dpo_distributed}.py,
// rlhf/sequence_processing.py get_batch_log_probs.
[[nodiscard]] Tensor torchtune_pairs(Forward& f, const Architecture& architecture, ModelModules& policy,
                                     const ReferenceModel& reference, const Tensor& ids);

}  // namespace membill
