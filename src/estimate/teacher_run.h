// The model that stage distill learns from: whole on every card, or sharded like the one that learns.
#pragma once

#include "blocks/torchtune_distill.h"
#include "estimate/reference_run.h"

namespace membill {

class TeacherRun {
 public:
  // REQUIRES: `student` has a teacher whose program is known.
  TeacherRun(Recorder& recorder, const ModelSpec& student, const TrainingPlan& plan, const Hardware& hardware,
             bool expand);

  [[nodiscard]] Tensor loss(Forward& f, const Architecture& architecture, ModelModules& student, const Tensor& ids);
  [[nodiscard]] ReferenceRun& stored() { return model_; }

 private:
  const ModelSpec& spec_;
  TrainingPlan plan_;
  Dims dims_;
  ReferenceRun model_;
};

}  // namespace membill
