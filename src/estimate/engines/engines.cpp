#include "estimate/engines/ddp.h"
#include "estimate/engines/engine.h"
#include "estimate/engines/fsdp2.h"
#include "estimate/engines/zero12.h"

namespace membill {

std::unique_ptr<EngineRun> make_engine(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan,
                                       const Hardware& hardware) {
  switch (plan.engine) {
    case Engine::ddp: return make_ddp(recorder, plan);
    case Engine::fsdp2: return shards_parameters(plan) ? make_fsdp2(recorder, plan, hardware, model.tied_embeddings) : nullptr;
    case Engine::deepspeed:
      return plan.sharding.zero == 1 || plan.sharding.zero == 2 ? make_zero12(recorder, plan, hardware, model.hidden)
                                                                : nullptr;
    case Engine::torch:
    case Engine::fsdp:
    case Engine::megatron: return nullptr;
  }
  return nullptr;
}

bool needs_every_layer(const TrainingPlan& plan) {
  return plan.engine == Engine::deepspeed || (shards_parameters(plan) && engine_word(plan, "wrap", "block") == "none");
}

std::int64_t pinned_bytes(std::int64_t bytes) {
  std::int64_t taken = bytes > 0 ? 1 : 0;
  while (taken < bytes) taken = checked_mul(taken, 2);
  return taken;
}

}  // namespace membill
