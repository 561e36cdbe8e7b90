#include "blocks/torchtune_pairs.h"

#include "blocks/layers.h"
#include "blocks/torchtune.h"

namespace membill {
namespace {

bool trains_adapters(const TrainingPlan& plan) { return plan.method != Method::full && plan.method != Method::freeze; }

class TunePairs : public TrlForward {
 public:
  using TrlForward::TrlForward;

  Tensor loss(ModelModules& policy, const ReferenceModel& reference) {
    Tensor sum = scored(f_, policy, nullptr);
    f_.moment("reference");
    without_gradients(reference, [&](Forward& f) {
      const Tensor ids = column(f.dims.N, DType::int64, "token ids");
      const Tensor unused = scored(f, *reference.modules, f_.loop_variables);
    });
    return sum;
  }

 private:
  // concatenated_forward: the sum of the log-probabilities of both halves. `held`: where the loop holds the logits, too.
  Tensor scored(Forward& f, ModelModules& modules, std::vector<Tensor>* held) const {
    const Tensor labels = column(f.dims.N, DType::int64, "labels");
    const Tensor logits = wide_logits(f, modules);
    r_.set_items(f.items.loss_probabilities);
    Tensor sum;
    if (trains_adapters(f.plan)) {
      sum = total(log_probabilities(f, logits, positions()));
    } else {
      const Size tokens = r_.symbols().ceil_div(f.dims.N, Size(2)), rows = r_.symbols().ceil_div(f.dims.b, Size(2));
      const auto half = [&] {
        const Tensor part = part_of(f, logits, {tokens, f.dims.V}, "gradient of both halves' logits, zero-filled");
        return total(log_probabilities(f, part, tokens - rows));
      };
      Tensor chosen = half();
      sum = r_.add(std::move(chosen), half(), "loss");
    }
    if (held != nullptr) *held = {logits};
    return sum;
  }

  Tensor wide_logits(Forward& f, ModelModules& modules) const {
    Tensor hidden = decoder(f, modules);
    r_.set_saved_on_host(nullptr);  // the hook leaves the head out, and what follows is outside of it
    Tensor logits = torchtune_wide_logits(f, architecture_, modules.outer, std::move(hidden));
    if (f.hooks != nullptr) f.hooks->after_model();
    return logits;
  }

  // logits_to_logprobs of all positions but each row's last, and what a position without a label is multiplied by.
  Tensor log_probabilities(Forward& f, const Tensor& logits, const Size& rows) const {
    const Shape one{rows, Size(1)};
    const Tensor labels = r_.empty(one, DType::int64, "shifted labels");
    const Tensor shifted = part_of(f, logits, {rows, f.dims.V}, "gradient of the logits, zero-filled");
    const Tensor counts = r_.empty(one, DType::boolean, "positions that count");
    const Tensor gathered = r_.gather(r_.log_softmax(r_.mul_scalar(shifted, "logits over the temperature")), labels);
    return r_.mul(gathered, counts);
  }
};

}  // namespace

bool runs_torchtune_pairs(const TrainingPlan& plan) {
  return plan.implementation == Implementation::torchtune && plan.stage == Stage::dpo;
}

bool holds_reference_logits(const TrainingPlan& plan) { return runs_torchtune_pairs(plan) && trains_adapters(plan); }

Tensor torchtune_pairs(Forward& f, const Architecture& architecture, ModelModules& policy,
                       const ReferenceModel& reference, const Tensor& ids) {
  return TunePairs(f, architecture, ids, f.dims.N).loss(policy, reference);
}

}  // namespace membill
