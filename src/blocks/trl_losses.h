// What TRL's trainers do with the model: forwards, reference, loss.
#pragma once

#include <string_view>

#include "blocks/trl_forward.h"

namespace membill {

// input_ids -> loss, as the stage's trainer (plan.stage) computes it. `counted` positions of all rows have a label. `reference` is
// null where the stage has none, or its log-probabilities were computed before.
// Source: trl 1.16 and 0.24, trainer/{sft,dpo,reward,kto}_trainer.py, experimental/{orpo,cpo}.
[[nodiscard]] Tensor trl_forward(Forward& f, const Architecture& architecture, ModelModules& policy,
                                 const ReferenceModel* reference, const Tensor& ids, const Size& counted);

}  // namespace membill
