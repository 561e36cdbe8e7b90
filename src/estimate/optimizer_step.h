// The optimizer of a job: what it makes when it is constructed, at its steps, and between them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "estimate/optimizer_states.h"
#include "estimate/parameter_step.h"
#include "estimate/parameters.h"
#include "membill/catalog.h"

namespace membill {

class OptimizerRun {
 public:
  // REQUIRES: plan.optimizer names a row of optimizers().
  OptimizerRun(Recorder& recorder, const TrainingPlan& plan, std::vector<TrainedParameter>& trained);

  // The optimizer's constructor: fp32 masters, and states that exist before the first step; all of them with `states`.
  // `idle`: what never gets a gradient, and has such states all the same (they are not billed under engines).
  void construct(bool states = false, const std::vector<TrainedParameter>& idle = {});
  // One step; the first creates the states. Nothing when updates run inside the backward.
  void step();
  // The step of one trained parameter alone.
  void step_one(std::size_t index);
  // The backward has returned: the update that a hook has left to the next one.
  void after_backward();
  // zero_grad(set_to_none=True).
  void drop_gradients();
  // Gradient clipping by norm. Nothing when gradients are gone before it.
  void clip();
  // False when the row's step temporaries are not modelled.
  [[nodiscard]] bool temporaries_known() const { return loop_ != nullptr || temporaries() != StepTemporaries::other; }
  // States and masters outside of the card's allocator.
  [[nodiscard]] const HostBytes& on_host() const { return states_.on_host(); }
  [[nodiscard]] const HostBytes& on_nvme() const { return states_.on_nvme(); }

 private:
  void make_masters();
  void create_states(const std::function<bool(const TrainedParameter& trained)>& belongs);
  void update_in_backward(Parameter& parameter);
  void update_pending();
  void step_in_loop(ParameterStep& loop);
  [[nodiscard]] std::unique_ptr<ParameterStep> new_loop() { return make_parameter_step(row_.name, r_, states_); }
  [[nodiscard]] StepTemporaries temporaries() const;

  Recorder& r_;
  const TrainingPlan& plan_;
  const OptimizerRow& row_;
  std::vector<TrainedParameter>& trained_;
  OptimizerStates states_;
  std::vector<DType> types_;  // of each parameter's temporaries
  std::vector<bool> has_states_;
  std::unique_ptr<ParameterStep>
      loop_;  // what the optimizer is, where it has a loop of its own; each step runs a new one
  bool in_backward_ = false;
  Parameter* pending_ = nullptr;  // LOMO: its gradient waits for the next one's hook
};

}  // namespace membill
