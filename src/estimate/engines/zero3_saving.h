// What stage 3 gathers while it saves 16-bit weights.
#pragma once

#include <map>
#include <vector>

#include "estimate/engines/engine.h"
#include "estimate/engines/zero3_coordinator.h"

namespace membill {

// stage3_gather_16bit_weights_on_model_save: each module's own parameters, module by module, on their way to the host (deepspeed 0.19
// runtime/engine.py _zero3_consolidated_16bit_state_dict). Adapters are saved so whatever the setting (transformers trainer.py save_model).
[[nodiscard]] SavingGathers gathers_of(const TrainingPlan& plan, const JobModules& job,
                                       const std::map<const Parameter*, Partitioned>& partitioned, std::int64_t ranks);

}  // namespace membill
