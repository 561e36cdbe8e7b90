#include "estimate/stored_weights.h"

#include <algorithm>

#include "estimate/supported.h"
#include "membill/catalog.h"
#include "membill/problem.h"

namespace membill {
namespace {

bool has_fused_experts(const ModelSpec& model) {
  for (const Section& section : model.sections)
    for (const LayerKind& kind : section.kinds)
      if (std::any_of(kind.tensors.begin(), kind.tensors.end(),
                      [](const TensorSpec& tensor) { return tensor.role == TensorRole::expert; }))
        return true;
  return false;
}

bool is_8bit_float(WeightFormat format) { return format == WeightFormat::fp8 || format == WeightFormat::fp8_rows; }

// Why the job cannot use the stored weights; empty: it can.
std::string obstacle(WeightFormat format, const ModelSpec& model, const Hardware& hardware, const TrainingPlan& plan) {
  const WeightFormatRow& row = weight_format(format);
  const bool serves = plan.stage == Stage::inference;
  const bool transformers = !serves || plan.inference.engine == "transformers";
  // transformers 5.24 quantizers/quantizer_finegrained_fp8.py validate_environment.
  if (is_8bit_float(format) && transformers && hardware.gpu && hardware.gpu->fp8 && !*hardware.gpu->fp8)
    return hardware.gpu->name + " has no fp8 units";
  if (serves) return {};
  if (plan.method == Method::full || plan.method == Method::freeze) return "they cannot be trained";
  if (!row.adapters) return "Transformers trains no adapters over them";
  if (format == WeightFormat::fp8 && has_fused_experts(model)) return "adapters over fp8 experts are not billed";
  TrainingPlan with = plan;
  with.weights = format;
  const auto problems = not_billed_yet(with), without = not_billed_yet(plan);
  return problems.size() > without.size() ? "adapters over them are not billed in such a job" : std::string();
}

}  // namespace

std::string packing_note(const TrainingPlan& plan) {
  const WeightFormatRow& row = weight_format(plan.weights);
  if (!row.quantized || row.packing == Packing::bitsandbytes || row.packing == Packing::llm_int8) return {};
  const bool unpacks_inside = plan.stage == Stage::inference && row.packing != Packing::half_quadratic;
  return "a use of " + std::string(row.name) + " weights makes " +
         (unpacks_inside ? "nothing whole: kernels unpack while they multiply" : std::string(row.use));
}

std::string take_stored_weights(const StoredWeights& stored, const ModelSpec& model, const Hardware& hardware,
                                TrainingPlan& plan) {
  if (stored.method.empty()) return {};
  const bool quantizes = weight_format(plan.weights).quantized;  // method qlora
  if (!stored.format) {
    return "the checkpoint's weights, stored by " + quoted(stored.method) +
           ", are in a format that is not billed: " + std::string(weight_format(plan.weights).name) + " taken";
  }
  const WeightFormatRow& row = weight_format(*stored.format);
  const std::string why = obstacle(*stored.format, model, hardware, plan);
  if (why.empty()) {
    plan.weights = *stored.format;
    plan.quantization = stored.layout;
    if (row.packing == Packing::bitsandbytes) plan.double_quant = stored.double_quant;
    return {};
  }
  if (!quantizes) plan.weights = WeightFormat::bf16;
  return "the checkpoint's " + std::string(row.name) + " weights are taken as " +
         (quantizes ? std::string(weight_format(plan.weights).name) : "dequantised to bf16") + ": " + why;
}

}  // namespace membill
