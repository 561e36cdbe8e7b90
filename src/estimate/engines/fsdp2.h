// torch.distributed.fsdp.fully_shard (torch 2.15 _fully_shard/_fsdp_param_group.py, _fsdp_collectives.py): every layer is a unit, the
// rest of the model is the root unit.
#pragma once

#include "estimate/engines/engine.h"

namespace membill {

[[nodiscard]] std::unique_ptr<EngineRun> make_fsdp2(Recorder& recorder, const TrainingPlan& plan,
                                                    const Hardware& hardware);

}  // namespace membill
