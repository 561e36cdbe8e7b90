// What a training engine does around the model's own program: it holds the parameters its own way, and acts when gradients appear.
// One file per engine, one line in engines.cpp. An engine only writes events into the trace.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "blocks/parameter_reader.h"
#include "estimate/engines/placement.h"
#include "estimate/parameters.h"
#include "membill/hardware.h"
#include "membill/training_plan.h"

namespace membill {

// Tensors that the engine makes together, for a moment, while a checkpoint is saved.
using SavingGather = WholeParameters;
using SavingGathers = std::vector<SavingGather>;

class EngineRun {
 public:
  virtual ~EngineRun() = default;
  // The model is built; the engine is constructed around it. May replace job.trained by what the optimizer really steps.
  virtual void wrap(JobModules& job) = 0;
  // A micro-batch begins; `last`: of its step.
  virtual void begin_micro_batch(bool last) { static_cast<void>(last); }
  // What one micro-batch leaves gathered the next may free: they are written out one by one, no more of them than differ.
  [[nodiscard]] virtual bool carries_over() const { return false; }
  // The gradient of `parameter` of this micro-batch has been accumulated.
  virtual void gradient_ready(Parameter& parameter) = 0;
  // What it does around the layers' forward, and around each use of a parameter; nullptr: nothing.
  virtual ForwardHooks* forward_hooks() { return nullptr; }
  virtual ParameterUse* parameter_use() { return nullptr; }
  // Around the backward of a micro-batch.
  virtual void before_backward() {}
  virtual void after_backward() {}
  // Around the optimizer's step: gradients in the form in which it reads them, and what goes with them.
  virtual void before_step() {}
  virtual void after_step() {}
  // The step is made in so many parts, one trained parameter each, with work around each; 0: as a whole.
  [[nodiscard]] virtual std::size_t sub_steps() const { return 0; }
  virtual void before_sub_step(std::size_t index) { static_cast<void>(index); }
  virtual void after_sub_step(std::size_t index) { static_cast<void>(index); }
  // Around a checkpoint, and what it gathers for it, one after another.
  virtual void at_saving(bool begins) { static_cast<void>(begins); }
  virtual SavingGathers gathers_to_save(const JobModules& job) { return static_cast<void>(job), SavingGathers(); }
  // The engine clips by itself; torch.nn.utils.clip_grad_norm_ does not run.
  [[nodiscard]] virtual bool clips() const { return false; }
  // It makes the optimizer's states as it starts, by a step without effect.
  [[nodiscard]] virtual bool makes_states() const { return false; }
  // Bytes in host memory by item of the bill, beside the optimizer's own.
  [[nodiscard]] virtual std::map<std::string, std::int64_t> on_host() { return {}; }
  // Bytes in files on NVMe, likewise.
  [[nodiscard]] virtual std::map<std::string, std::int64_t> on_nvme() { return {}; }
};

// The engine of `plan`, or nullptr for plain torch. REQUIRES: validate() accepts the plan.
[[nodiscard]] std::unique_ptr<EngineRun> make_engine(Recorder& recorder, const ModelSpec& model,
                                                     const TrainingPlan& plan, const Hardware& hardware);

// Whether the engine's events differ from layer to layer, so that every layer has to be simulated.
[[nodiscard]] bool needs_every_layer(const TrainingPlan& plan);

// Whether its step is a pipeline's (of one stage, where layers are recomputed in groups): pipeline_run.h.
[[nodiscard]] bool runs_pipeline(const TrainingPlan& plan);

// What PyTorch's allocator of page-locked memory takes for a request: the least power of two that holds it
// (torch 2.15 aten/src/ATen/core/CachingHostAllocator.h).
[[nodiscard]] std::int64_t pinned_bytes(std::int64_t bytes);

}  // namespace membill
