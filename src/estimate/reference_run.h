// The model that a stage compares its policy with, as the trainer prepares it for the engine.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "blocks/trl_forward.h"
#include "estimate/engines/engine.h"

namespace membill {

// A second model. ZeRO-3 and FSDP shard it like the policy, FSDP2 as one unit; elsewhere every rank has it whole.
// Source: trl 1.16 and 0.24 models/utils.py prepare_deepspeed, prepare_fsdp; accelerate prepare_model(evaluation_mode=True).
class ReferenceRun {
 public:
  ReferenceRun(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware,
               const Dims& dims, bool expand, const char* weights_item = "weights.reference");

  [[nodiscard]] ReferenceModel model();
  // Bytes in host memory by item, where the engine keeps its weights there.
  [[nodiscard]] std::map<std::string, std::int64_t> on_host();
  [[nodiscard]] std::map<std::string, std::int64_t> on_nvme();

 private:
  [[nodiscard]] std::map<std::string, std::int64_t> named(const std::map<std::string, std::int64_t>& stored) const;

  TrainingPlan plan_;
  const char* weights_item_;
  JobModules job_;
  std::unique_ptr<EngineRun> engine_;
};

}  // namespace membill
