#include "estimate/engines/engine.h"

#include <cstdlib>

#include "estimate/engines/ddp.h"
#include "estimate/engines/fsdp2.h"
#include "estimate/engines/zero12.h"

namespace membill {

std::unique_ptr<EngineRun> make_engine(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan,
                                       const Hardware& hardware) {
  switch (plan.engine) {
    case Engine::ddp: return make_ddp(recorder, plan);
    case Engine::fsdp2: return shards_parameters(plan) ? make_fsdp2(recorder, plan, hardware) : nullptr;
    case Engine::deepspeed:
      return plan.sharding.zero == 1 || plan.sharding.zero == 2 ? make_zero12(recorder, plan, hardware, model.hidden)
                                                                : nullptr;
    case Engine::torch:
    case Engine::fsdp:
    case Engine::megatron: return nullptr;
  }
  return nullptr;
}

bool needs_every_layer(const TrainingPlan& plan) { return plan.engine == Engine::deepspeed; }

double engine_number(const TrainingPlan& plan, const char* key, double fallback) {
  const auto found = plan.sharding.engine_keys.find(key);
  if (found == plan.sharding.engine_keys.end()) return fallback;
  char* end = nullptr;
  const double value = std::strtod(found->second.c_str(), &end);
  return end == found->second.c_str() ? fallback : value;
}

bool engine_flag(const TrainingPlan& plan, const char* key, bool fallback) {
  const auto found = plan.sharding.engine_keys.find(key);
  return found == plan.sharding.engine_keys.end() ? fallback : found->second == "true";
}

}  // namespace membill
