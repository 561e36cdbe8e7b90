#include "blocks/trl_ppo.h"

#include "blocks/causal_lm.h"
#include "blocks/layers.h"
#include "blocks/trl_classic.h"
#include "blocks/trl_losses.h"

namespace membill {
namespace {

class PpoForward : public TrlForward {
 public:
  using TrlForward::TrlForward;

  void score(const ReferenceModel& reference, const ScoringModel& value, const ScoringModel& reward,
             const Tensor& logits) {
    { const Tensor drawn = classic_log_probabilities(f_, logits); }
    compare(reference);
    for (const ScoringModel* model : {&value, &reward}) {
      HiddenStates states;
      std::shared_ptr<void> forward;
      { const Tensor scores = scores_of(*model, states, forward); }
      states.release(r_);
    }
  }

  Tensor loss(ModelModules& policy, const ScoringModel& value, PpoOutputs& outputs) {
    HiddenStates critic;
    Tensor values = scores_of(value, critic, outputs.critic);
    outputs.logits = whole_logits(f_, policy, &outputs.states);
    critic.release(r_);
    if (r_.autocast()) values = r_.cast(std::move(values), DType::fp32);
    const Tensor logits = part_of(f_, over_temperature(outputs.logits), {counted_, f_.dims.V},
                                  "gradient of the completions' logits, zero-filled");
    r_.set_items(f_.items.loss_probabilities);
    Tensor policy_loss = total(classic_log_probabilities(f_, logits));
    Tensor value_loss =
        total(r_.square(part_of(f_, values, {counted_, Size(1)}, "gradient of the completions' values, zero-filled")));
    return r_.add(std::move(policy_loss), std::move(value_loss), "loss");
  }

 private:
  // The completions' part divided in place: CopySlices copies the gradient of the whole, clones that of the part and divides it.
  Tensor over_temperature(const Tensor& logits) const {
    Tensor divided = r_.view(logits, logits.shape());
    if (!r_.needs_node({&logits})) return divided;
    r_.record(
        {&divided}, {r_.edge(logits)},
        [whole = logits.shape(), part = Shape{counted_, f_.dims.V}, type = logits.dtype()](Recorder& r, Gradients&) {
          Tensor result = r.empty(whole, type, "gradient of the logits, copied");
          const Tensor clone = r.empty(part, type, "gradient of the completions' logits");
          const Tensor scaled = r.empty(part, type, "gradient over the temperature");
          return Gradients{result};
        });
    return divided;
  }

  // The reference's logits are in the model's type: log-softmax a row at a time.
  void compare(const ReferenceModel& reference) {
    HiddenStates states;
    const bool adapters = f_.adapters;
    f_.adapters = reference.adapters;
    {
      const Tensor logits = whole_logits(f_, *reference.modules, &states);
      r_.set_items(f_.items.loss_probabilities);
      const Size row = r_.symbols().ceil_div(counted_, f_.dims.b);
      const Tensor one = r_.empty({row, f_.dims.V}, logits.dtype(), "log-softmax of a row");
    }
    states.release(r_);
    f_.adapters = adapters;
  }

  struct ScoringForward {
    Dims dims;
    Forward f;
    ScoringForward(const Forward& like, const ScoringModel& scoring)
        : dims(scoring.dims), f{like.r,      scoring.model,          like.plan,          dims, like.items,
                                like.stream, like.attention_dropout, like.hidden_dropout} {
      dims.b = like.dims.b, dims.s = like.dims.s, dims.N = like.dims.N, dims.samples = like.dims.samples;
      f.quiet = like.quiet;
    }
  };

  // `kept`: what must live as long as the graph.
  Tensor scores_of(const ScoringModel& scoring, HiddenStates& states, std::shared_ptr<void>& kept) const {
    const auto forward = std::make_shared<ScoringForward>(f_, scoring);
    kept = forward;
    Forward& f = forward->f;
    f.hidden_states = &states;
    Tensor hidden = decoder_forward(f, architecture_, scoring.modules, ids_);
    f.hidden_states = nullptr;
    r_.set_items(f.items.loss_logits);
    return apply_linear(f, scoring.modules.outer.at(kScoreHead), std::move(hidden));
  }
};

}  // namespace

void ppo_score(Forward& f, const Architecture& architecture, const ReferenceModel& reference, const ScoringModel& value,
               const ScoringModel& reward, const Tensor& logits, const Size& counted) {
  Recorder& r = f.r;
  const bool grad = r.grad_enabled();
  r.set_grad_enabled(false);
  const Tensor ids = r.empty({f.dims.N, Size(1)}, DType::int64, "prompts and completions");
  PpoForward(f, architecture, ids, counted).score(reference, value, reward, logits);
  r.set_grad_enabled(grad);
}

Tensor ppo_loss(Forward& f, const Architecture& architecture, ModelModules& policy, const ScoringModel& value,
                const Tensor& ids, const Size& counted, PpoOutputs& outputs) {
  return PpoForward(f, architecture, ids, counted).loss(policy, value, outputs);
}

}  // namespace membill
