// PPO as TRL's PPOTrainer runs it: a policy and a value model train together; a reference and a reward model score.
#pragma once

#include <memory>

#include "blocks/trl_forward.h"

namespace membill {

// A whole model whose head is a score of each token: the value model, and the reward model.
struct ScoringModel {
  const ModelSpec& model;
  const Dims& dims;
  ModelModules& modules;
};

// What the loop's variable `output` holds of a micro-batch.
struct PpoOutputs {
  HiddenStates states;
  Tensor logits;
  std::shared_ptr<void> critic;  // the value model's forward, whose checkpoints run again in backward

  void release(Recorder& r) {
    states.release(r);
    logits.drop();
    critic.reset();
  }
};

// Scores of what was generated, without gradients, outside of autocast: the rows of `f`, each with its `counted` share of completion
// tokens. `logits`: what the policy drew the completions from, of all rows in fp32.
void ppo_score(Forward& f, const Architecture& architecture, const ReferenceModel& reference, const ScoringModel& value,
               const ScoringModel& reward, const Tensor& logits, const Size& counted);

// The loss of a micro-batch: the value model's forward, then the policy's, both with their hidden states; the policy's outputs
// stay in `outputs`.
// Source: trl 0.24 trainer/ppo_trainer.py train, PolicyAndValueWrapper.
[[nodiscard]] Tensor ppo_loss(Forward& f, const Architecture& architecture, ModelModules& policy,
                              const ScoringModel& value, const Tensor& ids, const Size& counted, PpoOutputs& outputs);

}  // namespace membill
