#include "estimate/plan_warnings.h"

namespace membill {
namespace {

void warn_of_positions(const ModelSpec& model, const TrainingPlan& plan, std::vector<std::string>& warnings) {
  if (model.max_positions <= 0 || plan.seq <= model.max_positions) return;
  const std::string excess =
      "seq " + std::to_string(plan.seq) + " exceeds the model's " + std::to_string(model.max_positions) + " positions";
  if (model.position == PositionKind::learned) {
    warnings.push_back(excess + ": its position table has no row for them, a real run stops with an index error");
  } else if (model.position == PositionKind::rotary) {
    warnings.push_back(excess + ": the memory is right, the model was not trained for it");
  }
}

}  // namespace

std::vector<std::string> plan_warnings(const ModelSpec& model, const TrainingPlan& plan) {
  std::vector<std::string> warnings;
  warn_of_positions(model, plan, warnings);
  if (plan.precision == Precision::amp_bf16 && plan.weights == WeightFormat::fp16) {
    warnings.push_back("precision amp-bf16 over fp16 weights mixes two 16-bit formats");
  }
  if (plan.precision == Precision::amp_fp16 && plan.weights == WeightFormat::fp16 && plan.method == Method::full) {
    warnings.push_back("PyTorch's gradient scaler refuses fp16 gradients: amp-fp16 needs fp32 weights to train whole");
  }
  return warnings;
}

}  // namespace membill
