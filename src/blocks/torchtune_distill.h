// torchtune's knowledge distillation: cross entropy of the labels beside the divergence of the logits from a teacher's.
#pragma once

#include "blocks/trl_forward.h"

namespace membill {

[[nodiscard]] bool runs_torchtune_distillation(const TrainingPlan& plan);

// Which way the divergence is taken (stage_args.kd_loss: forward, reverse, symmetric).
enum class Divergence : std::uint8_t { forward, reverse, symmetric };
// None: stage_args.kd_loss is another word. Forward where nothing is said.
[[nodiscard]] std::optional<Divergence> divergence(const TrainingPlan& plan);

// The model that is learnt from, with what a forward of it needs.
struct Teacher {
  const ModelSpec& spec;
  const TrainingPlan& plan;
  const Dims& dims;
  const Architecture& architecture;
  ReferenceModel model;
};

// input_ids -> loss; the moments "teacher" and "loss" begin with the teacher's forward and behind it. Source: torchtune 0.6.1
// recipes/knowledge_distillation_single_device.py _loss_step, modules/loss/kd_losses.py.
[[nodiscard]] Tensor torchtune_distillation(Forward& f, const Architecture& architecture, ModelModules& student,
                                            const Teacher& teacher, const Tensor& ids);

}  // namespace membill
