// The verbs of membill's core.
#pragma once

#include "membill/hardware.h"
#include "membill/model_spec.h"
#include "membill/problem.h"
#include "membill/report.h"
#include "membill/training_plan.h"

namespace membill {

struct EstimateOptions {
  bool replay = true;          // replay the allocator: reserved, and the verdict on a card
  bool smallest_card = false;  // bisect the least capacity on which the replay survives
};

// What is wrong with the three inputs together (an adapter target that no module has, degrees that do not divide, a stage that
// the implementation cannot run). Keys are those of the job file. Empty: estimate() will answer.
[[nodiscard]] std::vector<Problem> validate(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware);

// The bill. REQUIRES: validate() found nothing. Throws OverflowError when a count leaves 64 bits.
[[nodiscard]] Report estimate(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware,
                              const EstimateOptions& options = {});

}  // namespace membill
