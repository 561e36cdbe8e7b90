// The groups of validate(): each adds what it finds. Keys are those of the job file.
#pragma once

#include "membill/hardware.h"
#include "membill/model_spec.h"
#include "membill/problem.h"
#include "membill/training_plan.h"

namespace membill {

// Fields that are out of range by themselves, for plans that no reader has checked.
void check_ranges(const TrainingPlan& plan, Problems& problems);
// Storage, precision, method, optimizer and kernels that exclude one another.
void check_method(const ModelSpec& model, const TrainingPlan& plan, Problems& problems);
void check_optimizer(const TrainingPlan& plan, Problems& problems);
void check_kernels(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware, Problems& problems);
// Adapter targets, saved and trained modules that the model does not have.
void check_modules(const ModelSpec& model, const TrainingPlan& plan, Problems& problems);
// Images that the model does not see, or that its sequences cannot hold.
void check_images(const ModelSpec& model, const TrainingPlan& plan, Problems& problems);
// Cards, degrees, and what an engine cannot do.
void check_sharding(const TrainingPlan& plan, Problems& problems);
void check_degrees(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware, Problems& problems);

// The first layer kind of the decoder (or only) stack; nullptr: no stack is known.
[[nodiscard]] const LayerKind* first_layer(const ModelSpec& model);

}  // namespace membill
