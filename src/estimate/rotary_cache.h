// Tables of rotary positions that a framework's own models keep from their construction on.
#pragma once

#include "blocks/forward.h"

namespace membill {

[[nodiscard]] bool keeps_rotary_cache(const TrainingPlan& plan);
// REQUIRES: keeps_rotary_cache(plan).
[[nodiscard]] Tensor rotary_cache(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan,
                                  const Dims& dims, ItemId item);

}  // namespace membill
