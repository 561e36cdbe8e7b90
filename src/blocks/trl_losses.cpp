#include "blocks/trl_losses.h"

#include "blocks/generations.h"
#include "blocks/layers.h"
#include "blocks/loss.h"
#include "blocks/stage_args.h"
#include "blocks/trl_classic.h"
#include "blocks/trl_forward.h"
#include "blocks/trl_liger.h"

namespace membill {
namespace {

FusedHeadOutputs outputs_of(Stage stage) {
  FusedHeadOutputs outputs;
  outputs.entropy = true;
  outputs.top1 = stage != Stage::kto;
  outputs.mean_logits = stage == Stage::dpo || stage == Stage::kto;
  return outputs;
}

class TrlRun : public TrlForward {
 public:
  using TrlForward::TrlForward;

  Tensor loss(ModelModules& policy, const ReferenceModel* reference) {
    const Stage stage = f_.plan.stage;
    if (is_supervised(f_.plan)) return supervised_loss(policy);
    if (stage == Stage::reward) return reward(policy);
    if (stage == Stage::orpo || stage == Stage::simpo) return odds(policy);
    return is_classic() ? preference_classic(policy, reference) : preference(policy, reference);
  }

 private:
  Tensor supervised_loss(ModelModules& policy) {
    if (smooths_labels(f_.plan)) return supervised_smoothed(policy, generations(f_.plan).trl);
    if (!is_classic()) return supervised(policy);
    return stage_word(f_.plan, "loss_type") == "dft" ? supervised_dft_classic(policy) : supervised_classic(policy);
  }

  Tensor supervised(ModelModules& policy) {
    const FusedHeadResult outputs = fused(f_, policy, outputs_of(Stage::sft));
    return total(r_.neg(outputs.log_probabilities));
  }

  // The model's own loss, then metrics over the logits that Accelerate hands out.
  Tensor supervised_classic(ModelModules& policy) {
    Tensor hidden = decoder(f_, policy);
    r_.set_items(f_.items.loss_logits);
    SavedOnHost* const host = r_.saved_on_host();
    r_.set_saved_on_host(nullptr);  // a hook that does nothing is around the head
    Tensor logits = architecture_.head(f_, policy.outer, std::move(hidden));
    r_.set_saved_on_host(host);
    Tensor loss = causal_lm_loss(f_, logits, ids_);
    if (f_.hooks != nullptr) f_.hooks->after_model();
    r_.set_items(f_.items.loss_upcast);
    if (r_.autocast()) {
      r_.forget_copies();
      logits = r_.cast(std::move(logits), DType::fp32);
    }
    classic_supervised_metrics(f_, logits);
    return loss;
  }

  // dft_loss, which the trainer gives whole logits.
  Tensor supervised_dft_classic(ModelModules& policy) {
    const Tensor logits = whole_logits(f_, policy);
    r_.set_items(f_.items.loss_probabilities);
    const Tensor log_probs = classic_log_probabilities(f_, logits);
    classic_supervised_metrics(f_, logits);
    return total(log_probs);
  }

  // transformers' LabelSmoother over whole logits. TRL's metrics come after it: of the same logits, or of a second forward.
  Tensor supervised_smoothed(ModelModules& policy, Generations::Trl trl) {
    Tensor logits = whole_logits(f_, policy);
    r_.set_items(f_.items.loss_probabilities);
    Tensor loss = label_smoothed_loss(f_, logits);
    if (trl == Generations::Trl::classic) classic_supervised_metrics(f_, logits);
    logits.drop();
    if (trl != Generations::Trl::fused) return loss;
    without_gradients({&policy},
                      [&](Forward& f) { const FusedHeadResult outputs = fused(f, policy, outputs_of(Stage::sft)); });
    return loss;
  }

  Tensor preference_classic(ModelModules& policy, const ReferenceModel* reference) {
    const bool pairs = f_.plan.stage == Stage::dpo;
    if (!pairs) kl_forward(f_, policy);
    std::vector<Tensor> copies;
    Tensor log_probs, likelihood;
    {
      HiddenStates states;
      const Tensor logits = preference_logits(f_, policy, states);
      r_.set_items(f_.items.loss_probabilities);
      log_probs = classic_log_probabilities(
          f_, pairs ? logits : part_of(f_, logits, {positions(), f_.dims.V}, "gradient of the logits, zero-filled"));
      const Tensor weighed = weighs() ? policy_weights(f_, logits) : Tensor();
      if (counts_likelihood()) likelihood = likelihood_of_chosen(logits);
      keep_copies(logits, copies);
      states.release(r_);
    }
    if (reference != nullptr) reference_classic(*reference);
    Tensor sum = total(log_probs);
    return likelihood.defined() ? r_.add(std::move(sum), std::move(likelihood)) : sum;
  }

  Tensor preference(ModelModules& policy, const ReferenceModel* reference) {
    if (estimates_divergence()) kl_estimate({&policy, true, false});
    const Tensor labels = r_.empty({f_.dims.N, Size(1)}, DType::int64, "labels of the completions");
    const FusedHeadResult outputs = fused(f_, policy, outputs_of(f_.plan.stage));
    Tensor reference_result;
    if (reference != nullptr) reference_result = run_reference(*reference);
    return total(
        part_of(f_, outputs.log_probabilities, outputs.log_probabilities.shape(), "gradient of the log-probabilities"));
  }

  // ORPO and CPO (SimPO) make whole logits, in fp32 from the model's outputs on.
  Tensor odds(ModelModules& policy) {
    const Tensor mask = column(f_.dims.N, DType::int64, "mask of both sequences");
    const Tensor labels = column(f_.dims.N, DType::int64, "labels of both sequences");
    const Tensor logits = whole_logits(f_, policy);
    r_.set_items(f_.items.loss_probabilities);
    Tensor likelihood;
    if (counts_likelihood()) likelihood = likelihood_of_chosen(logits);
    Tensor log_probs = log_probabilities(logits);
    Tensor sum = total(log_probs);
    return likelihood.defined() ? r_.add(std::move(sum), std::move(likelihood)) : sum;
  }

  // A score of each sequence: the head is one row.
  Tensor reward(ModelModules& policy) {
    Tensor hidden = decoder(f_, policy);
    r_.set_items(f_.items.loss_logits);
    const Tensor scores = apply_linear(f_, policy.outer.at(kScoreHead), std::move(hidden));
    const Tensor kept = part_of(f_, scores, {f_.dims.b, Size(1)}, "gradient of the scores, zero-filled");
    return total(kept);
  }

  // DPO averages the logits of each half; KTO copies the rows of desirable and of undesirable samples, and keeps the copies.
  void keep_copies(const Tensor& logits, std::vector<Tensor>& copies) {
    const Size half = r_.symbols().ceil_div(f_.plan.stage == Stage::dpo ? counted_ : f_.dims.N, Size(2));
    for (int i = 0; i < 2; ++i) {
      Tensor copy = r_.empty({half, f_.dims.V}, logits.dtype(), "logits of half of the rows");
      if (f_.plan.stage == Stage::kto) copies.push_back(std::move(copy));
    }
  }

  [[nodiscard]] bool weighs() const { return f_.plan.stage == Stage::dpo && stage_flag(f_.plan, "use_weighting"); }

  [[nodiscard]] bool estimates_divergence() const {
    return f_.plan.stage == Stage::kto && stage_word(f_.plan, "loss_type") != "apo_zero_unpaired";
  }

  // The same by the fused head.
  void kl_estimate(const ReferenceModel& model) const {
    without_gradients(model,
                      [&](Forward& f) { const Tensor estimate = fused(f, *model.modules, {}).log_probabilities; });
  }

  // KTO's estimate of the divergence: completions of other prompts, without gradients.
  void kl_forward(Forward& f, ModelModules& modules) {
    const bool grad = r_.grad_enabled();
    r_.set_grad_enabled(false);
    {
      HiddenStates states;
      const Tensor logits = scored_logits(f, modules, states);
    }
    r_.set_grad_enabled(grad);
    f_.moment("forward");
  }

  void reference_classic(const ReferenceModel& reference) {
    beside_policy(reference, [&](Forward& f) {
      std::vector<Tensor> copies;
      HiddenStates states;
      const Tensor logits = scored_logits(f, *reference.modules, states);
      const Tensor weighed = weighs() ? policy_weights(f, logits) : Tensor();
      if (counts_likelihood()) const Tensor unused = likelihood_of_chosen(logits);
      keep_copies(logits, copies);
      states.release(r_);
    });
  }

  // Logits of a forward without gradients, from which log-probabilities were made.
  Tensor scored_logits(Forward& f, ModelModules& modules, HiddenStates& states) const {
    Tensor logits = preference_logits(f, modules, states);
    f_.moment("loss");
    r_.set_items(f.items.loss_probabilities);
    const Tensor result = classic_log_probabilities(f, logits);
    return logits;
  }

  // DPO asks for hidden states, too; with use_logits_to_keep for the completions' logits and one position more.
  Tensor preference_logits(Forward& f, ModelModules& modules, HiddenStates& states) const {
    if (f.plan.stage != Stage::dpo) return whole_logits(f, modules);
    if (stage_flag(f.plan, "use_logits_to_keep")) return last_logits(f, modules, counted_ + f.dims.b, &states);
    return whole_logits(f, modules, &states);
  }

  // A cross entropy over the chosen half: ORPO's, CPO's with cpo_alpha, DPO's with rpo_alpha.
  [[nodiscard]] bool counts_likelihood() const {
    const Stage stage = f_.plan.stage;
    const char* weight = stage == Stage::dpo ? "rpo_alpha" : "cpo_alpha";
    return stage == Stage::orpo || (stage != Stage::kto && stage_number(f_.plan, weight).value_or(0) != 0);
  }

  // Cross entropy of the chosen half, over a shifted copy.
  Tensor likelihood_of_chosen(const Tensor& logits) {
    const Size rows = r_.symbols().ceil_div(f_.dims.b, Size(2)), tokens = r_.symbols().ceil_div(f_.dims.N, Size(2));
    const Tensor chosen = part_of(f_, logits, {tokens, f_.dims.V}, "gradient of the logits, zero-filled");
    const Tensor shifted =
        part_of(f_, chosen, {tokens - rows, f_.dims.V}, "gradient of the chosen logits, zero-filled");
    const bool whole = r_.symbols().equal(rows, Size(1));  // one row without its last position lies in one piece
    Tensor copy = whole ? shifted : r_.contiguous_copy(shifted, shifted.shape(), "shifted logits");
    const Tensor labels = column(tokens - rows, DType::int64, "shifted labels");
    return negative_log_likelihood(f_, r_.log_softmax(std::move(copy)), labels);
  }

  // selective_log_softmax over logits[:, :-1]: the logits are kept, their gradient is made at once.
  Tensor log_probabilities(const Tensor& logits) {
    const Tensor shifted = part_of(f_, logits, {positions(), f_.dims.V}, "gradient of the logits, zero-filled");
    if (is_classic()) return classic_log_probabilities(f_, shifted);
    const Tensor labels = column(positions(), DType::int64, "shifted labels");
    const Tensor counts = column(positions(), DType::boolean, "positions that count");
    Tensor result = column(positions(), DType::fp32, "log-probabilities");
    const Tensor normaliser = column(positions(), DType::fp32, "log of the normaliser");
    if (!r_.needs_node({&shifted})) return result;
    r_.record(
        {&result}, {r_.edge(shifted)},
        [kept = r_.saved(shifted), labels, normaliser, kept_result = r_.detach(result)](Recorder& rec, Gradients&) {
          return Gradients{rec.empty(kept.shape(), kept.dtype(), "gradient of the shifted logits")};
        });
    return result;
  }

  Tensor run_reference(const ReferenceModel& reference) {
    Tensor result;
    beside_policy(reference, [&](Forward& f) { result = fused(f, *reference.modules, {}).log_probabilities; });
    f_.moment("loss");
    return result;
  }

  // Calls `run` with the reference, while the policy's graph waits.
  void beside_policy(const ReferenceModel& reference, const std::function<void(Forward& f)>& run) const {
    f_.moment("reference");
    without_gradients(reference, run);
  }
};

}  // namespace

Tensor trl_forward(Forward& f, const Architecture& architecture, ModelModules& policy, const ReferenceModel* reference,
                   const Tensor& ids, const Size& counted) {
  if (runs_liger_loss(f.plan)) return liger_preference(f, architecture, policy, reference, ids, counted);
  return TrlRun(f, architecture, ids, counted).loss(policy, reference);
}

}  // namespace membill
