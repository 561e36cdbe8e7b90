// Optimizers whose step is a Python loop over parameters: what the body of the loop makes for a moment, and states that depend on more
// than the parameter's size.
#pragma once

#include <memory>

#include "estimate/optimizer_states.h"

namespace membill {

class ParameterStep {
 public:
  ParameterStep(Recorder& recorder, OptimizerStates& states)
      : r_(recorder), states_(states), item_(recorder.writer().item("step.temporaries")) {}
  ParameterStep(const ParameterStep&) = delete;
  ParameterStep& operator=(const ParameterStep&) = delete;
  virtual ~ParameterStep() = default;

  // The body of the loop for one parameter, whose states it makes the first time. Its locals outlive it until the next turn assigns
  // them, or the object is destroyed.
  virtual void update(const TrainedParameter& trained, bool has_states) = 0;
  // Whether hidden matrices are a group of their own, behind all others.
  [[nodiscard]] virtual bool has_groups() const { return false; }
  // The first group is done; locals of an optimizer of its own go.
  virtual void end_group() {}
  // Whether a group's states are all there before its first update.
  [[nodiscard]] virtual bool makes_states_first() const { return false; }
  // Of an optimizer that updates inside the backward: whether a parameter's turn comes only when the next one's gradient is there.
  [[nodiscard]] virtual bool waits_for_next() const { return false; }

 protected:
  [[nodiscard]] Tensor make(const Shape& shape, DType type) const {
    return r_.empty(shape, type, "optimizer step temporary", item_);
  }
  [[nodiscard]] Tensor scalar(DType type) const { return make({Size(1), Size(1)}, type); }
  // tensor.norm(2) / sqrt(elements) of an fp32 tensor, or the norm divided otherwise.
  void size_of() const;

  Recorder& r_;
  OptimizerStates& states_;
  ItemId item_;
};

// The loop of the optimizer called `name`; nullptr: it has none of its own.
[[nodiscard]] std::unique_ptr<ParameterStep> make_parameter_step(std::string_view name, Recorder& recorder,
                                                                 OptimizerStates& states);

}  // namespace membill
