// What the losses of TRL's trainers have in common: one forward of a model, with or without gradients, to log-probabilities.
#pragma once

#include <functional>

#include "blocks/causal_lm.h"
#include "blocks/trl_head.h"

namespace membill {

// A model that a stage runs beside the policy, without gradients. The policy itself with its adapters off: `modules` is the
// policy's and `adapters` false.
struct ReferenceModel {
  ModelModules* modules = nullptr;
  bool adapters = true;
  bool own = false;  // a second model: its engine, not the policy's, works around its forward
  ForwardHooks* hooks = nullptr;
  ParameterUse* parameter_use = nullptr;
};

class TrlForward {
 public:
  // `counted` positions of all rows have a label.
  TrlForward(Forward& f, const Architecture& architecture, const Tensor& ids, const Size& counted)
      : f_(f), r_(f.r), architecture_(architecture), ids_(ids), counted_(counted) {}

 protected:
  // Final hidden states; the moment "loss" begins.
  [[nodiscard]] Tensor decoder(Forward& f, ModelModules& modules) const;
  [[nodiscard]] FusedHeadResult fused(Forward& f, ModelModules& modules, const FusedHeadOutputs& outputs) const;
  // The model's logits as Accelerate hands them out: in fp32 when it runs the model under autocast. With `states`, the hidden states
  // before each layer and the last are outputs, too, which the caller releases.
  [[nodiscard]] Tensor whole_logits(Forward& f, ModelModules& modules, HiddenStates* states = nullptr) const;
  // The same of the last `kept` positions of all rows (logits_to_keep).
  [[nodiscard]] Tensor last_logits(Forward& f, ModelModules& modules, const Size& kept,
                                   HiddenStates* states = nullptr) const;
  // Calls `run` without gradients and checkpoints: `model` beside whatever graph waits.
  void without_gradients(const ReferenceModel& model, const std::function<void(Forward& f)>& run) const;
  // The same with gradients: a model of its own without checkpoints, the policy's as it trains.
  void with_gradients(const ReferenceModel& model, const std::function<void(Forward& f)>& run) const;
  // A sum of x: a scalar whose gradient is an expanded view.
  [[nodiscard]] Tensor total(const Tensor& x) const;
  [[nodiscard]] Tensor column(const Size& rows, DType type, const char* label) const {
    return r_.empty({rows, Size(1)}, type, label);
  }
  // TRL before 1.0: the loss is computed over whole logits.
  [[nodiscard]] bool is_classic() const;
  [[nodiscard]] Size positions() const { return f_.dims.N - f_.dims.b; }

  Forward& f_;
  Recorder& r_;
  const Architecture& architecture_;
  const Tensor& ids_;
  Size counted_;

 private:
  void beside(const ReferenceModel& model, bool gradients, const std::function<void(Forward& f)>& run) const;
  // `last`: the final hidden states; `rows`: those that get logits.
  [[nodiscard]] Tensor logits_of(Forward& f, ModelModules& modules, Tensor last, Tensor rows,
                                 HiddenStates* states) const;
};

}  // namespace membill
