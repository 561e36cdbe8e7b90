// Code of a model that membill has no program of: which program stands for it, and between which others the truth lies.
#pragma once

#include <optional>
#include <string>

#include "membill/model_spec.h"
#include "membill/report.h"
#include "membill/training_plan.h"

namespace membill {

// The plan whose program is simulated: torch.compile's kernels as the eager code that they replace, Unsloth's as Liger's.
[[nodiscard]] TrainingPlan as_programmed(const ModelSpec& model, const TrainingPlan& plan);

// The other end of the range, and what the report says of it.
struct CodeRange {
  std::optional<TrainingPlan> other;  // none: nothing bounds it from that side
  std::string assumption;
};
// Empty for code that membill has a program of.
[[nodiscard]] std::optional<CodeRange> code_range(const ModelSpec& model, const TrainingPlan& plan);

// Widens the totals of `report` to those of the other end's `requested` bytes, and a verdict that holds at one end only to tight.
void widen(Report& report, std::int64_t requested);

}  // namespace membill
