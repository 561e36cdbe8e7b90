#include "blocks/llamafactory.h"

#include "blocks/layers.h"
#include "blocks/loss.h"

namespace membill {
namespace {

constexpr double kValueDropout = 0.1;  // ValueHead summary_dropout_prob

class LlamaFactoryRun : public TrlForward {
 public:
  using TrlForward::TrlForward;

  // The logits are metrics, too: they stay until the loss is complete.
  Tensor pairs(ModelModules& policy, const ReferenceModel* reference) {
    const Tensor clones = reference == nullptr ? Tensor() : copied_batch();
    const Tensor logits = whole_logits(f_, policy);
    const Tensor log_probs = log_probabilities(f_, logits);
    if (reference != nullptr) {
      beside_policy(*reference, [&](Forward& f) {
        const Tensor more_clones = copied_batch();
        const Tensor compared = whole_logits(f, *reference->modules);
        const Tensor result = log_probabilities(f, compared);
      });
    }
    return total(log_probs);
  }

  Tensor unpaired(ModelModules& policy, const ReferenceModel* reference) {
    Tensor log_probs;
    std::vector<Tensor> halves = both_halves(f_, policy, log_probs);
    if (reference != nullptr) {
      beside_policy(*reference, [&](Forward& f) {
        Tensor result;
        const std::vector<Tensor> compared = both_halves(f, *reference->modules, result);
      });
    }
    return total(log_probs);
  }

  // The batch has labels, so the language model computes its own loss, which nobody uses; a value is read off every hidden state in fp32.
  Tensor reward(ModelModules& policy) {
    HiddenStates states;
    f_.hidden_states = &states;
    const Tensor hidden = decoder(f_, policy);
    r_.set_items(f_.items.loss_logits);
    Tensor logits = architecture_.head(f_, policy.outer, hidden);
    const Tensor own_loss = causal_lm_loss(f_, logits, ids_);
    r_.set_items(f_.items.loss_logits);
    Tensor scored = r_.cast(r_.dropout(hidden, kValueDropout), DType::fp32);
    Tensor values = value_of(std::move(scored));
    r_.set_items(f_.items.loss_upcast);
    if (logits.dtype() != DType::fp32) logits = r_.cast(std::move(logits), DType::fp32);
    logits.drop();
    r_.set_items(f_.items.loss_logits);
    if (f_.hooks != nullptr) f_.hooks->after_model();
    f_.hidden_states = nullptr;
    states.release(r_);
    return total(part_of(f_, values, {f_.dims.b, Size(1)}, "gradient of the values, zero-filled"));
  }

 private:
  // nested_detach(batch, clone=True)
  [[nodiscard]] Tensor copied_batch() const {
    return r_.empty({f_.dims.N, Size(3)}, DType::int64, "copies of ids, mask and labels",
                    r_.writer().item("activations.inputs"));
  }

  // get_batch_logps: the softmax of a strided part first copies it.
  Tensor log_probabilities(Forward& f, const Tensor& logits) const {
    r_.set_items(f.items.loss_probabilities);
    const Shape shape{positions(), f.dims.V};
    const Tensor shifted = part_of(f, logits, shape, "gradient of the logits, zero-filled");
    const Tensor labels = column(positions(), DType::int64, "shifted labels");
    const Tensor counts = column(positions(), DType::boolean, "positions that count");
    Tensor probabilities;
    {
      const Tensor strided = f.one_row() ? Tensor() : r_.empty(shape, logits.dtype(), "logits, contiguous");
      probabilities = r_.log_softmax(shifted);
    }
    return r_.gather(probabilities, labels);
  }

  // A forward, another one of the KL rows without gradients, and copies of the desirable and of the undesirable rows.
  std::vector<Tensor> both_halves(Forward& f, ModelModules& modules, Tensor& log_probs) const {
    const Tensor clones = copied_batch();
    const Tensor logits = whole_logits(f, modules);
    log_probs = log_probabilities(f, logits);
    const bool grad = r_.grad_enabled();
    r_.set_grad_enabled(false);
    {
      const Tensor more_clones = copied_batch();
      const Tensor estimated = whole_logits(f, modules);
      const Tensor result = log_probabilities(f, estimated);
    }
    r_.set_grad_enabled(grad);
    std::vector<Tensor> halves;
    halves.reserve(2);
    for (int i = 0; i < 2; ++i)
      halves.push_back(
          r_.empty({r_.symbols().ceil_div(f.dims.N, Size(2)), f.dims.V}, logits.dtype(), "logits of half of the rows"));
    return halves;
  }

  Tensor value_of(Tensor scored) const {
    const DType compute = r_.autocast().value_or(scored.dtype());
    Tensor values = column(f_.dims.N, compute, "values");
    Tensor input = compute == scored.dtype() ? std::move(scored) : r_.cast(std::move(scored), compute);
    r_.record({&values}, {r_.edge(input)},
              [kept = r_.saved(input), shape = input.shape(), compute](Recorder& rec, Gradients&) {
                return Gradients{rec.empty(shape, compute, "gradient of the scored states")};
              });
    return values;
  }

  void beside_policy(const ReferenceModel& reference, const std::function<void(Forward& f)>& run) const {
    f_.moment("reference");
    without_gradients(reference, run);
  }
};

}  // namespace

bool runs_llamafactory(const TrainingPlan& plan) {
  const Stage stage = plan.stage;
  const bool own = stage == Stage::reward || stage == Stage::kto || stage == Stage::dpo || stage == Stage::orpo ||
                   stage == Stage::simpo;
  return own && plan.software.count("llamafactory") != 0;
}

Tensor llamafactory_forward(Forward& f, const Architecture& architecture, ModelModules& policy,
                            const ReferenceModel* reference, const Tensor& ids, const Size& counted) {
  LlamaFactoryRun run(f, architecture, ids, counted);
  if (f.plan.stage == Stage::reward) return run.reward(policy);
  return f.plan.stage == Stage::kto ? run.unpaired(policy, reference) : run.pairs(policy, reference);
}

}  // namespace membill
