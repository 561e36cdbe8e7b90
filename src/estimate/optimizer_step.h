// The optimizer: its states and what its step makes for a moment.
#pragma once

#include <vector>

#include "estimate/parameters.h"
#include "membill/catalog.h"

namespace membill {

class OptimizerRun {
 public:
  // REQUIRES: plan.optimizer names a row of optimizers().
  OptimizerRun(Recorder& recorder, const TrainingPlan& plan, std::vector<TrainedParameter>& trained);

  // The constructor of the optimizer: states that exist before the first step.
  void construct();
  // One step; the first creates the states.
  void step();
  // zero_grad(set_to_none=True).
  void drop_gradients();
  // torch.nn.utils.clip_grad_norm_ (foreach): the norms.
  void clip();
  // False when the row's step temporaries are not modelled.
  [[nodiscard]] bool temporaries_known() const;

 private:
  template <typename Work>
  void for_each(Work work);
  void create_states();
  void create_state(const OptimizerState& state, const TrainedParameter& trained);
  void temporaries_of_all(int copies);
  void temporaries_of_each(int copies);
  [[nodiscard]] StepTemporaries temporaries() const;

  Recorder& r_;
  const TrainingPlan& plan_;
  const OptimizerRow& row_;
  std::vector<TrainedParameter>& trained_;
  std::vector<Tensor> states_;
  bool created_ = false;
};

}  // namespace membill
