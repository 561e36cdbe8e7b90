#include "blocks/trl_losses.h"

#include "blocks/generations.h"
#include "blocks/layers.h"
#include "blocks/loss.h"
#include "blocks/trl_classic.h"
#include "blocks/trl_head.h"

namespace membill {
namespace {

// A sum of x: a scalar whose gradient is an expanded view.
Tensor total(Forward& f, const Tensor& x) {
  Recorder& r = f.r;
  Tensor sum = r.empty({Size(1), Size(1)}, DType::fp32, "loss");
  if (!r.needs_node({&x})) return sum;
  r.record({&sum}, {r.edge(x)}, [shape = x.shape(), type = x.dtype()](Recorder& rec, Gradients&) {
    return Gradients{rec.placeholder(shape, type)};
  });
  return sum;
}

FusedHeadOutputs outputs_of(Stage stage) {
  FusedHeadOutputs outputs;
  outputs.entropy = true;
  outputs.top1 = stage != Stage::kto;
  outputs.mean_logits = stage == Stage::dpo || stage == Stage::kto;
  return outputs;
}

class TrlRun {
 public:
  TrlRun(Forward& f, const Architecture& architecture, const Tensor& ids, const Size& counted)
      : f_(f), r_(f.r), architecture_(architecture), ids_(ids), counted_(counted) {}

  Tensor supervised(ModelModules& policy) {
    const FusedHeadResult outputs = fused(f_, policy, outputs_of(Stage::sft));
    return total(f_, r_.neg(outputs.log_probabilities));
  }

  // The model's own loss, then metrics over the logits that Accelerate hands out.
  Tensor supervised_classic(ModelModules& policy) {
    Tensor hidden = decoder(f_, policy);
    r_.set_items(f_.items.loss_logits);
    Tensor logits = architecture_.head(f_, policy.outer, std::move(hidden));
    Tensor loss = causal_lm_loss(f_, logits, ids_);
    if (f_.hooks != nullptr) f_.hooks->after_model();
    r_.set_items(f_.items.loss_upcast);
    if (r_.autocast()) logits = r_.cast(std::move(logits), DType::fp32);
    classic_supervised_metrics(f_, logits);
    return loss;
  }

  Tensor preference_classic(ModelModules& policy, const ReferenceModel* reference) {
    const bool pairs = f_.plan.stage == Stage::dpo;
    if (!pairs) kl_forward(f_, policy);
    std::vector<Tensor> copies;
    Tensor log_probs;
    {
      const Tensor logits = whole_logits(f_, policy, pairs);
      r_.set_items(f_.items.loss_probabilities);
      log_probs = classic_log_probabilities(
          f_, pairs ? logits : part_of(f_, logits, {positions(), f_.dims.V}, "gradient of the logits, zero-filled"));
      keep_copies(logits, copies);
    }
    if (reference != nullptr) reference_classic(*reference);
    return total(f_, log_probs);
  }

  Tensor preference(ModelModules& policy, const ReferenceModel* reference) {
    const Tensor labels = r_.empty({f_.dims.N, Size(1)}, DType::int64, "labels of the completions");
    const FusedHeadResult outputs = fused(f_, policy, outputs_of(f_.plan.stage));
    Tensor reference_result;
    if (reference != nullptr) reference_result = run_reference(*reference);
    return total(f_, part_of(f_, outputs.log_probabilities, outputs.log_probabilities.shape(),
                             "gradient of the log-probabilities"));
  }

  // ORPO and CPO (SimPO) make whole logits, in fp32 from the model's outputs on.
  Tensor odds(ModelModules& policy) {
    const Tensor mask = column(f_.dims.N, DType::int64, "mask of both sequences");
    const Tensor labels = column(f_.dims.N, DType::int64, "labels of both sequences");
    const Tensor logits = whole_logits(f_, policy, false);
    r_.set_items(f_.items.loss_probabilities);
    Tensor likelihood;
    if (counts_likelihood()) likelihood = likelihood_of_chosen(logits);
    Tensor log_probs = log_probabilities(logits);
    Tensor sum = total(f_, log_probs);
    return likelihood.defined() ? r_.add(std::move(sum), std::move(likelihood)) : sum;
  }

  // A score of each sequence: the head is one row.
  Tensor reward(ModelModules& policy) {
    Tensor hidden = decoder(f_, policy);
    r_.set_items(f_.items.loss_logits);
    const Tensor scores = apply_linear(f_, policy.outer.at(kScoreHead), std::move(hidden));
    const Tensor kept = part_of(f_, scores, {f_.dims.b, Size(1)}, "gradient of the scores, zero-filled");
    return total(f_, kept);
  }

 private:
  FusedHeadResult fused(Forward& f, ModelModules& modules, const FusedHeadOutputs& outputs) {
    Tensor hidden = decoder(f, modules);
    FusedHeadResult result =
        fused_log_probabilities(f, architecture_.head_matrix(modules.outer), std::move(hidden), counted_, outputs);
    if (f.hooks != nullptr) f.hooks->after_model();
    return result;
  }

  Tensor decoder(Forward& f, ModelModules& modules) {
    if (f.hooks != nullptr) f.hooks->before_model();
    Tensor hidden = decoder_forward(f, architecture_, modules, ids_);
    r_.writer().moment("loss");
    return hidden;
  }

  [[nodiscard]] Tensor column(const Size& rows, DType type, const char* label) const {
    return r_.empty({rows, Size(1)}, type, label);
  }

  [[nodiscard]] Size positions() const { return f_.dims.N - f_.dims.b; }

  // The model's outputs as Accelerate hands them out: in fp32 when it runs the model under autocast. `states`: the hidden states
  // before each layer and the last are outputs, too.
  Tensor whole_logits(Forward& f, ModelModules& modules, bool states) {
    HiddenStates hidden_states;
    if (states) f.hidden_states = &hidden_states;
    Tensor hidden = decoder(f, modules);
    r_.set_items(f.items.loss_logits);
    Tensor logits = architecture_.head(f, modules.outer, hidden);
    if (f.hooks != nullptr) f.hooks->after_model();
    f.hidden_states = nullptr;
    r_.set_items(f.items.loss_upcast);
    if (!r_.autocast()) return logits;
    Tensor wide = r_.cast(logits, DType::fp32);
    if (states) hidden_states.convert(r_, hidden);
    logits.drop();
    hidden.drop();
    return wide;
  }

  // DPO averages the logits of each half; KTO copies the rows of desirable and of undesirable samples, and keeps the copies.
  void keep_copies(const Tensor& logits, std::vector<Tensor>& copies) {
    const Size half = r_.symbols().ceil_div(f_.plan.stage == Stage::dpo ? counted_ : f_.dims.N, Size(2));
    for (int i = 0; i < 2; ++i) {
      Tensor copy = r_.empty({half, f_.dims.V}, logits.dtype(), "logits of half of the rows");
      if (f_.plan.stage == Stage::kto) copies.push_back(std::move(copy));
    }
  }

  // KTO's estimate of the divergence: completions of other prompts, without gradients.
  void kl_forward(Forward& f, ModelModules& modules) {
    const bool grad = r_.grad_enabled();
    r_.set_grad_enabled(false);
    {
      const Tensor logits = whole_logits(f, modules, false);
      r_.set_items(f_.items.loss_probabilities);
      const Tensor result = classic_log_probabilities(f, logits);
    }
    r_.set_grad_enabled(grad);
    r_.writer().moment("forward");
  }

  void reference_classic(const ReferenceModel& reference) {
    beside_policy(reference, [&](Forward& f) {
      std::vector<Tensor> copies;
      const Tensor logits = whole_logits(f, *reference.modules, f.plan.stage == Stage::dpo);
      r_.set_items(f_.items.loss_probabilities);
      const Tensor result = classic_log_probabilities(f, logits);
      keep_copies(logits, copies);
    });
  }

  [[nodiscard]] bool counts_likelihood() const {
    if (f_.plan.stage == Stage::orpo) return true;
    const auto alpha = f_.plan.stage_args.find("cpo_alpha");
    return alpha != f_.plan.stage_args.end() && alpha->second != "0" && alpha->second != "0.0";
  }

  // Cross entropy of the chosen half, over a shifted copy.
  Tensor likelihood_of_chosen(const Tensor& logits) {
    const Size rows = r_.symbols().ceil_div(f_.dims.b, Size(2)), tokens = r_.symbols().ceil_div(f_.dims.N, Size(2));
    const Tensor chosen = part_of(f_, logits, {tokens, f_.dims.V}, "gradient of the logits, zero-filled");
    const Tensor shifted =
        part_of(f_, chosen, {tokens - rows, f_.dims.V}, "gradient of the chosen logits, zero-filled");
    Tensor copy = r_.contiguous_copy(shifted, shifted.shape(), "shifted logits");
    const Tensor labels = column(tokens - rows, DType::int64, "shifted labels");
    return negative_log_likelihood(f_, r_.log_softmax(std::move(copy)), labels);
  }

  // selective_log_softmax over logits[:, :-1]: the logits are kept, their gradient is made at once.
  Tensor log_probabilities(const Tensor& logits) {
    const Tensor shifted = part_of(f_, logits, {positions(), f_.dims.V}, "gradient of the logits, zero-filled");
    if (classic_) return classic_log_probabilities(f_, shifted);
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
    return result;
  }

  // Calls `run` without gradients and checkpoints, while the policy's graph waits.
  template <typename Run>
  void beside_policy(const ReferenceModel& reference, const Run& run) {
    r_.writer().moment("reference");
    TrainingPlan plan = f_.plan;
    plan.checkpointing.mode = Checkpointing::none;
    Forward f{r_, f_.model, plan, f_.dims, f_.items, f_.stream};
    f.adapters = reference.adapters;
    r_.set_grad_enabled(false);
    run(f);
    r_.set_grad_enabled(true);
  }

  Forward& f_;
  Recorder& r_;
  const Architecture& architecture_;
  const Tensor& ids_;
  Size counted_;
  bool classic_ = generations(f_.plan).trl == Generations::Trl::classic;
};

}  // namespace

Tensor trl_forward(Forward& f, const Architecture& architecture, ModelModules& policy, const ReferenceModel* reference,
                   const Tensor& ids, const Size& counted) {
  TrlRun run(f, architecture, ids, counted);
  const bool classic = generations(f.plan).trl == Generations::Trl::classic;
  if (f.plan.stage == Stage::sft || f.plan.stage == Stage::pretrain)
    return classic ? run.supervised_classic(policy) : run.supervised(policy);
  if (f.plan.stage == Stage::reward) return run.reward(policy);
  if (f.plan.stage == Stage::orpo || f.plan.stage == Stage::simpo) return run.odds(policy);
  if (classic) return run.preference_classic(policy, reference);
  return run.preference(policy, reference);
}

}  // namespace membill
