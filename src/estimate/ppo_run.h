// The models that PPO has beside the policy, and what they do in a step.
#pragma once

#include "blocks/trl_ppo.h"
#include "estimate/rollout.h"

namespace membill {

class PpoRun {
 public:
  // Builds the value model, whose parameters join those of `job` that train, and the reward model.
  PpoRun(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan, const Dims& dims, bool expand,
         JobModules& job);

  // Moments "generate" and "score": all micro-batches of an update at once.
  void rollout(Forward& f, const Architecture& architecture, JobModules& job, const ReferenceModel& reference);
  [[nodiscard]] Tensor loss(Forward& f, const Architecture& architecture, JobModules& job, const Tensor& ids);
  // The micro-batch's outputs go: with the update's end, or where several micro-batches make one, with each.
  void release() { outputs_.release(r_); }

 private:
  void generate(Forward& f, const Architecture& architecture, JobModules& job);
  [[nodiscard]] ScoringModel value() { return {scored_, scored_dims_, value_.model}; }

  Recorder& r_;
  const TrainingPlan& plan_;
  const Dims& dims_;
  RolloutSizes sizes_;
  Size rows_, chunk_;  // of an update; that generate or are scored at once
  ModelSpec scored_;
  TrainingPlan value_plan_, reward_plan_;
  Dims scored_dims_;
  JobModules value_, reward_;
  Tensor logits_;  // that the completions were drawn from: alive until the next update's take their place
  std::vector<Tensor> buffered_;
  PpoOutputs outputs_;
};

}  // namespace membill
