// What a training engine does around the model's own program: it holds the parameters its own way, and acts when gradients appear.
// One file per engine, one line in engines.cpp. An engine only writes events into the trace.
#pragma once

#include <memory>

#include "estimate/parameters.h"
#include "membill/hardware.h"
#include "membill/training_plan.h"

namespace membill {

class EngineRun {
 public:
  virtual ~EngineRun() = default;
  // The model is built; the engine is constructed around it. May replace job.trained by what the optimizer really steps.
  virtual void wrap(JobModules& job) = 0;
  // The gradient of `parameter` of this micro-batch has been accumulated.
  virtual void gradient_ready(Parameter& parameter) = 0;
  // What it does around the layers' forward; nullptr: nothing.
  virtual ForwardHooks* forward_hooks() { return nullptr; }
  // Around the backward of a micro-batch.
  virtual void before_backward() {}
  virtual void after_backward() {}
};

// The engine of `plan`, or nullptr for plain torch. REQUIRES: validate() accepts the plan.
[[nodiscard]] std::unique_ptr<EngineRun> make_engine(Recorder& recorder, const TrainingPlan& plan, const Hardware& hardware);

// A value of plan.sharding.engine_keys as a number or flag; `fallback` when it is absent, null or auto.
[[nodiscard]] double engine_number(const TrainingPlan& plan, const char* key, double fallback);
[[nodiscard]] bool engine_flag(const TrainingPlan& plan, const char* key, bool fallback);

}  // namespace membill
