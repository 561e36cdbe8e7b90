#include "blocks/deepspeed_checkpoint.h"
#include "estimate/engines/bf16_optimizer.h"
#include "estimate/engines/ddp.h"
#include "estimate/engines/engine.h"
#include "estimate/engines/fsdp1.h"
#include "estimate/engines/fsdp2.h"
#include "estimate/engines/megatron.h"
#include "estimate/engines/zero0.h"
#include "estimate/engines/zero12.h"
#include "estimate/engines/zero3.h"

namespace membill {

std::unique_ptr<EngineRun> make_engine(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan,
                                       const Hardware& hardware) {
  switch (plan.engine) {
    case Engine::ddp: return make_ddp(recorder, plan);
    case Engine::fsdp2:
      return shards_parameters(plan) ? make_fsdp2(recorder, plan, hardware, model.tied_embeddings) : nullptr;
    case Engine::deepspeed:
      if (plan.sharding.zero == 0) return make_zero0(recorder, plan);
      if (runs_bf16_optimizer(plan)) return make_bf16_optimizer(recorder, plan, hardware);
      return plan.sharding.zero == 3 ? make_zero3(recorder, model, plan, hardware)
                                     : make_zero12(recorder, plan, hardware, model.hidden);
    case Engine::fsdp: return shards_parameters(plan) ? make_fsdp1(recorder, plan, hardware) : nullptr;
    case Engine::megatron: return make_megatron(recorder, plan, hardware);
    case Engine::torch: return nullptr;
  }
  return nullptr;
}

bool runs_pipeline(const TrainingPlan& plan) {
  const CheckpointPlan& c = plan.checkpointing;
  const bool grouped = c.mode == Checkpointing::full && (c.method == "block" || c.layers.value_or(1) > 1);
  return plan.engine == Engine::megatron && (plan.parallel.pp > 1 || grouped);
}

bool needs_every_layer(const TrainingPlan& plan) {
  return runs_pipeline(plan) || (plan.engine == Engine::deepspeed && plan.sharding.zero > 0) ||
         calls_deepspeed_checkpoint(plan) || (shards_parameters(plan) && engine_word(plan, "wrap", "block") == "none");
}

std::int64_t pinned_bytes(std::int64_t bytes) {
  std::int64_t taken = bytes > 0 ? 1 : 0;
  while (taken < bytes) taken = checked_mul(taken, 2);
  return taken;
}

}  // namespace membill
