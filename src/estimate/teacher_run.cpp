#include "estimate/teacher_run.h"

#include "blocks/architecture.h"
#include "membill/catalog.h"

namespace membill {
namespace {

// Without adapters, and stored as it computes.
TrainingPlan teacher_plan(const TrainingPlan& plan) {
  TrainingPlan teacher = plan;
  teacher.method = Method::full;
  teacher.adapter = {};
  teacher.checkpointing = {};
  if (weight_format(plan.weights).quantized)
    teacher.weights = plan.precision == Precision::fp32 ? WeightFormat::fp32 : WeightFormat::bf16;
  return teacher;
}

}  // namespace

TeacherRun::TeacherRun(Recorder& recorder, const ModelSpec& student, const TrainingPlan& plan, const Hardware& hardware,
                       bool expand)
    : spec_(*student.teacher),
      plan_(teacher_plan(plan)),
      dims_(define_dims(recorder.symbols(), spec_, plan_)),
      model_(recorder, spec_, plan_, hardware, dims_, expand, "weights.teacher") {}

Tensor TeacherRun::loss(Forward& f, const Architecture& architecture, ModelModules& student, const Tensor& ids) {
  const Architecture* program = find_architecture(spec_.model_type, plan_.implementation);
  return torchtune_distillation(f, architecture, student, {spec_, plan_, dims_, *program, model_.model()}, ids);
}

}  // namespace membill
