// What FullyShardedDataParallel gathers for a checkpoint, FULL_STATE_DICT or SHARDED_STATE_DICT.
#pragma once

#include "estimate/engines/fsdp1_unit.h"

namespace membill {

// Of `units`, one after another, as plan.save.state says.
[[nodiscard]] SavingGathers gathers_of(const TrainingPlan& plan, const FlatPlan& flat,
                                       const std::vector<Fsdp1Unit*>& units, const SymbolTable& symbols);

}  // namespace membill
