#include "estimate/code_range.h"

#include <algorithm>

#include "catalog/liger_types.h"
#include "program/aten_operators.h"

namespace membill {
namespace {

bool fuses(const ModelSpec& model) { return is_patched_by_liger(model.model_type); }

TrainingPlan with_code(const TrainingPlan& plan, Implementation implementation) {
  TrainingPlan result = plan;
  result.compile = false;
  result.implementation = implementation;
  if (implementation == Implementation::liger) result.loss.reset();
  return result;
}

// unsloth_zoo 2026.10 gradient_checkpointing.py: its checkpoints are autograd functions around a forward without gradients, whatever is
// asked; what a layer's nodes would hold of such a forward (int8 linears their inputs) is not there. Its training_utils.py
// prepare_model_for_training, not PEFT's, prepares the model: what does not train stays in 16 bits.
TrainingPlan as_unsloth_runs(const TrainingPlan& plan, Implementation implementation) {
  TrainingPlan result = with_code(plan, implementation);
  result.checkpointing.reentrant = result.checkpointing.mode != Checkpointing::none;
  result.kbit_prepare = false;
  return result;
}

// unsloth 2026.10 models/_utils.py DISABLE_SDPA_MODEL_NAMES, _FLEX_PREFERRED_MODELS: scores that are never whole by flex attention, where
// the release has it for the type.
bool turns_sdpa_off(const ModelSpec& model) {
  return model.model_type == "gemma3" || model.model_type == "gemma3_text";
}

CodeRange unsloth_range(const ModelSpec& model, const TrainingPlan& plan) {
  CodeRange range;
  const bool fused = fuses(model), eager = turns_sdpa_off(model) && plan.attention == AttentionKernel::sdpa;
  if (fused || eager) range.other = as_unsloth_runs(plan, Implementation::hf);
  if (eager) range.other->attention = AttentionKernel::eager;
  range.assumption =
      fused ? "Unsloth's kernels are billed as Liger's, which keep the same tensors of norms, gated MLP and loss; "
              "the high end is Transformers' own code"
            : "Unsloth's kernels are billed as Transformers' own code: an upper bound";
  if (eager)
    range.assumption +=
        " with whole attention scores, as in releases that turn SDPA off for this type and have no flex attention";
  return range;
}

// torchtitan compiles each layer, and the loss. What a compiled layer keeps at least: what selective checkpointing of its products and
// attention does, without the layer's last product; the loss keeps the logits in 16 bits.
CodeRange compiled_torchtitan(const TrainingPlan& plan) {
  CodeRange range;
  range.other = plan;
  range.other->loss = LossKind::native;
  if (plan.checkpointing.mode == Checkpointing::none) {
    range.other->checkpointing.mode = Checkpointing::selective;
    range.other->checkpointing.selective = {"ops:aten.mm", "ops:aten._scaled_dot_product_flash_attention",
                                            "ops:aten._scaled_dot_product_efficient_attention"};
  }
  range.other->checkpointing.selective.emplace_back(kWithoutLast);
  range.assumption =
      "compile: what Inductor fuses is billed as the eager code, an upper bound; the low end keeps of a layer its "
      "products and "
      "attention only, and the logits in 16 bits";
  return range;
}

void shift(Range& range, std::int64_t down, std::int64_t up) {
  if (range.low) range.low = std::max<std::int64_t>(0, *range.low - down);
  if (range.high) range.high = checked_add(*range.high, up);
}

}  // namespace

TrainingPlan as_programmed(const ModelSpec& model, const TrainingPlan& plan) {
  if (plan.implementation == Implementation::unsloth)
    return as_unsloth_runs(plan, fuses(model) ? Implementation::liger : Implementation::hf);
  return plan.compile ? with_code(plan, plan.implementation) : plan;
}

std::optional<CodeRange> code_range(const ModelSpec& model, const TrainingPlan& plan) {
  if (plan.implementation == Implementation::unsloth) return unsloth_range(model, plan);
  if (!plan.compile) return std::nullopt;
  if (plan.implementation == Implementation::torchtitan) return compiled_torchtitan(plan);
  CodeRange range;
  if (fuses(model) && plan.implementation == Implementation::hf) range.other = with_code(plan, Implementation::liger);
  range.assumption =
      range.other ? "compile: what Inductor fuses is billed as the eager code, an upper bound; the low end is Liger's "
                    "fused kernels (measured once, Llama 1B with 4 layers: 0.64 of the eager peak over the states)"
                  : "compile: what Inductor fuses is billed as the eager code, an upper bound";
  return range;
}

void widen(Report& report, std::int64_t requested) {
  const std::int64_t likely = *report.totals.requested.likely;
  const std::int64_t down = std::max<std::int64_t>(0, likely - requested),
                     up = std::max<std::int64_t>(0, requested - likely);
  for (Range* range :
       {&report.totals.requested, &report.totals.allocated, &report.totals.reserved, &report.totals.device})
    shift(*range, down, up);
  for (RankBill& rank : report.ranks)
    for (Range* range : {&rank.requested, &rank.allocated, &rank.reserved, &rank.device}) shift(*range, down, up);
  Verdict& verdict = report.verdict;
  if (verdict.answer != Answer::fits || !verdict.capacity || up == 0) return;
  if (checked_add(*report.totals.device.likely, up) <= *verdict.capacity) return;
  verdict.answer = Answer::tight;
  verdict.because += "; the high end of the range would not fit";
}

}  // namespace membill
