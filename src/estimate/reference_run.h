// The model that a stage compares its policy with, as the trainer prepares it for the engine.
#pragma once

#include <memory>

#include "blocks/trl_forward.h"
#include "estimate/engines/engine.h"

namespace membill {

// A second model. ZeRO-3 and FSDP shard it like the policy, FSDP2 as one unit; elsewhere every rank has it whole.
// Source: trl 1.16 and 0.24 models/utils.py prepare_deepspeed, prepare_fsdp; accelerate prepare_model(evaluation_mode=True).
class ReferenceRun {
 public:
  ReferenceRun(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware,
               const Dims& dims, bool expand);

  [[nodiscard]] ReferenceModel model();

 private:
  TrainingPlan plan_;
  JobModules job_;
  std::unique_ptr<EngineRun> engine_;
};

}  // namespace membill
