#include "blocks/trl_grpo.h"

#include "blocks/layers.h"
#include "blocks/trl_classic.h"
#include "blocks/trl_liger.h"
#include "blocks/trl_liger_grpo.h"

namespace membill {
namespace {

class GrpoRun : public TrlForward {
 public:
  using TrlForward::TrlForward;

  void score(const ReferenceModel& scored) {
    without_gradients(scored, [&](Forward& f) { const Tensor result = log_probabilities(f, *scored.modules); });
  }

  Tensor loss(ModelModules& policy) {
    const Tensor attention_mask = column(f_.dims.N, DType::int64, "mask of prompts and completions");
    if (runs_liger_loss(f_.plan)) return fused_by_liger(policy);
    const Tensor result = log_probabilities(f_, policy);
    return total(ratios(result));
  }

 private:
  // compute_liger_loss of trl 0.24: the base model past the forward that Accelerate puts autocast around.
  Tensor fused_by_liger(ModelModules& policy) {
    r_.pause_autocast();
    const Tensor hidden = decoder(f_, policy);
    r_.set_items(f_.items.head);
    const Tensor without_last =
        part_of(f_, hidden, {positions(), f_.dims.h}, "gradient of the final states, zero-filled");
    const Tensor part =
        part_of(f_, without_last, {counted_, f_.dims.h}, "gradient of the states but the last, zero-filled");
    Tensor loss = liger_policy_loss(f_, architecture_.head_matrix(policy.outer).weight, part);
    if (f_.hooks != nullptr) f_.hooks->after_model();
    r_.resume_autocast();
    return loss;
  }

  Tensor log_probabilities(Forward& f, ModelModules& modules) {
    if (is_classic()) return classic_log_probabilities_of(f, modules);
    const Tensor labels = column(f.dims.N, DType::int64, "labels of the completions");
    FusedHeadOutputs outputs;
    outputs.entropy = true;
    const FusedHeadResult result = fused(f, modules, outputs);
    const Tensor entropies = column(counted_, DType::fp32, "entropies of the completions");
    return joined(
        part_of(f, result.log_probabilities, {counted_, Size(1)}, "gradient of the log-probabilities, zero-filled"));
  }

  // The logits of the completions, and of one position more; divided by the temperature.
  Tensor classic_log_probabilities_of(Forward& f, ModelModules& modules) {
    Tensor logits = last_logits(f, modules, counted_ + f.dims.b);
    logits = part_of(f, logits, {counted_, f.dims.V}, "gradient of the logits, zero-filled");
    logits = r_.mul_scalar(std::move(logits), "logits over the temperature");
    r_.set_items(f.items.loss_probabilities);
    const Tensor result = classic_log_probabilities(f, logits);
    if (r_.grad_enabled()) classic_entropies(f, logits);
    return joined(result);
  }

  // torch.cat of the chunks of rows, of which there is one.
  Tensor joined(const Tensor& part) const { return r_.contiguous_copy(part, part.shape(), "log-probabilities"); }

  // The clipped ratio times the advantage, for each token: what the backward keeps is that of its operators.
  Tensor ratios(const Tensor& log_probabilities) {
    const Tensor old = r_.detach(log_probabilities);
    Tensor ratio =
        r_.sigmoid(r_.sub(log_probabilities, old, "logarithm of the ratio"));  // keeps its output, as exp does
    Tensor clipped = r_.clamp(ratio, Recorder::Bounds::both);
    const Tensor advantages = column(f_.dims.b, DType::fp32, "advantages");
    Tensor first = r_.mul(ratio, advantages, "ratio times advantage");
    Tensor second = r_.mul(std::move(clipped), advantages, "clipped ratio times advantage");
    Tensor loss = r_.neg(r_.add(std::move(first), std::move(second), "smaller of the two"));
    if (f_.plan.beta.value_or(0) != 0)
      loss = r_.add(std::move(loss), r_.sigmoid(r_.add_scalar(log_probabilities, "difference to the reference")));
    return r_.mul(std::move(loss), column(counted_, DType::fp32, "mask of the completions"), "masked loss");
  }
};

}  // namespace

void grpo_score(Forward& f, const Architecture& architecture, const ReferenceModel& scored, const Tensor& ids,
                const Size& counted) {
  GrpoRun(f, architecture, ids, counted).score(scored);
}

Tensor grpo_loss(Forward& f, const Architecture& architecture, ModelModules& policy, const Tensor& ids,
                 const Size& counted) {
  return GrpoRun(f, architecture, ids, counted).loss(policy);
}

}  // namespace membill
