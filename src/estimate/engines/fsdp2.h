// torch.distributed.fsdp.fully_shard (torch 2.15 _fully_shard/_fsdp_param_group.py, _fsdp_collectives.py): every layer is a unit, the
// rest of the model is the root unit; in the Trainer the embedding is a unit, too, and so are the final norm and the head together
// (accelerate 1.15 utils/fsdp_utils.py).
#pragma once

#include "estimate/engines/engine.h"

namespace membill {

[[nodiscard]] std::unique_ptr<EngineRun> make_fsdp2(Recorder& recorder, const TrainingPlan& plan,
                                                    const Hardware& hardware, bool tied_embeddings);

}  // namespace membill
