// GRPO through Liger's fused loss: use_liger_loss of TRL before 1.0.
#pragma once

#include "blocks/forward.h"

namespace membill {

// LigerFusedLinearGRPOLoss over the completions' final hidden states: a scalar.
[[nodiscard]] Tensor liger_policy_loss(Forward& f, Parameter& head, const Tensor& hidden);

}  // namespace membill
