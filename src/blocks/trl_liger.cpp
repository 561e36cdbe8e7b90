#include "blocks/trl_liger.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "blocks/generations.h"
#include "blocks/layers.h"
#include "blocks/stage_args.h"
#include "blocks/trl_classic.h"

namespace membill {
namespace {

// liger_kernel 0.8.5 chunked_loss/fused_linear_preference.py LigerFusedLinearPreferenceBase.forward with a chunk of one pair, whose rows
// are copied; fused_linear_unpaired_preference.py with one of a single sequence.
class FusedPreference {
 public:
  FusedPreference(Forward& f, Parameter& head, const Tensor& hidden, bool compares)
      : r_(f.r), f_(f), head_(head), hidden_(hidden), compares_(compares), copies_(has_pairs(f.plan.stage)) {
    chunks_ = std::max<std::int64_t>(1, r_.symbols().evaluate(f.dims.b) / (copies_ ? 2 : 1));
    rows_ = r_.symbols().ceil_div(hidden.rows(), Size(chunks_));
  }

  // The gradients of the hidden states and of the head, as far as they train: the function keeps them for its backward.
  Gradients run() {
    const bool to_hidden = hidden_.requires_grad(), to_head = head_.value.requires_grad();
    Gradients result(2);
    if (to_head)
      result[1] = r_.empty(head_.value.shape(), head_.value.dtype(), "gradient of the head", f_.items.gradients);
    std::vector<Tensor> parts;
    Tensor input, compared, labels;  // variables of the loop
    for (std::int64_t i = 0; i < chunks_; ++i) {
      if (copies_) {
        input = rows_of_chunk("final states of a pair");
        if (compares_) compared = rows_of_chunk("final states of the reference, of a pair");
        labels = r_.empty({rows_, Size(1)}, DType::int64, "labels of a pair");
      }
      Tensor gradient = chunk(to_hidden, to_head);
      if (to_hidden) parts.push_back(std::move(gradient));
    }
    if (to_hidden) result[0] = r_.empty(hidden_.shape(), hidden_.dtype(), "gradient of the final hidden states");
    return result;
  }

 private:
  Tensor rows_of_chunk(const char* label) { return r_.empty({rows_, f_.dims.h}, hidden_.dtype(), label); }

  // Inductor's order of a graph is the one with the smallest peak that it foresees (torch/_inductor/memory.py). Its usual one has the
  // metrics last, so that the logits stay beside their gradient. Where the head's gradient then makes the peak, the metrics come
  // first, and the gradient of the logits takes their place.
  [[nodiscard]] bool reuses_logits() const {
    const auto bytes = [&](const Size& elements, DType type) {
      return checked_mul(r_.symbols().evaluate(elements), bytes_per_element(type));
    };
    const std::int64_t softmax = bytes(rows_ * f_.dims.V, DType::fp32);
    const std::int64_t rows = bytes(rows_ * f_.dims.h, hidden_.dtype());
    return checked_add(bytes(head_.value.shape().elements(), head_.value.dtype()), rows) > softmax;
  }

  // What Inductor makes of one chunk.
  Tensor chunk(bool to_hidden, bool to_head) {
    const DType type = hidden_.dtype();
    const Shape shape{rows_, f_.dims.V};
    const Tensor logits = r_.empty(shape, type, "logits of a chunk");
    r_.use_matmul_workspace();
    if (compares_) {
      const Tensor compared = r_.empty(shape, type, "logits of the reference, of a chunk");
      r_.use_matmul_workspace();
    }
    if (!to_hidden && !to_head) return {};
    Tensor softmax = r_.empty(shape, DType::fp32, "gradient of the log-softmax of a chunk");
    const Tensor gradient =
        to_head && reuses_logits() ? logits : r_.empty(shape, type, "gradient of the logits of a chunk");
    softmax.drop();
    Tensor result;
    if (to_hidden) {
      result = rows_of_chunk("gradient of the final states of a chunk");
      r_.use_matmul_workspace();
    }
    if (to_head) {
      const Tensor part = r_.empty(head_.value.shape(), head_.value.dtype(), "gradient of the head, a chunk's part");
      r_.use_matmul_workspace();
    }
    return result;
  }

  Recorder& r_;
  Forward& f_;
  Parameter& head_;
  const Tensor& hidden_;
  bool compares_, copies_;
  std::int64_t chunks_ = 1;
  Size rows_;
};

class LigerRun : public TrlForward {
 public:
  using TrlForward::TrlForward;

  Tensor loss(ModelModules& policy, const ReferenceModel* reference) {
    if (f_.plan.stage == Stage::kto) {
      estimate_divergence({&policy});
      if (reference != nullptr) estimate_divergence(*reference);
      f_.moment("forward");
    }
    r_.pause_autocast();  // the base models are called past the forward that Accelerate puts autocast around
    Tensor result = fused_loss(policy, reference);
    r_.resume_autocast();
    return result;
  }

 private:
  // _compute_kl_logps: whole logits of both models, without gradients.
  void estimate_divergence(const ReferenceModel& model) const {
    without_gradients(model, [&](Forward& f) {
      const Tensor logits = whole_logits(f, *model.modules);
      r_.set_items(f.items.loss_probabilities);
      const Tensor result = classic_log_probabilities(f, logits);
    });
  }

  Tensor fused_loss(ModelModules& policy, const ReferenceModel* reference) {
    HiddenStates states, compared_states;
    const Tensor hidden = base_model(f_, policy, states);
    Tensor compared;
    if (reference != nullptr) {
      f_.moment("reference");
      with_gradients(*reference, [&](Forward& f) { compared = base_model(f, *reference->modules, compared_states); });
      f_.moment("loss");
    }
    const Tensor ids = r_.empty({f_.dims.N, Size(1)}, DType::int64, "labels, those of the prompts masked");
    const Tensor part = part_of(f_, hidden, {positions(), f_.dims.h}, "gradient of the final states, zero-filled");
    if (compared.defined())
      compared = part_of(f_, compared, part.shape(), "gradient of the reference's final states, zero-filled");
    Tensor result = head_and_loss(architecture_.head_matrix(policy.outer).weight, part, compared);
    states.release(r_);
    compared_states.release(r_);
    return result;
  }

  Tensor base_model(Forward& f, ModelModules& modules, HiddenStates& states) const {
    if (f.plan.stage == Stage::dpo) f.hidden_states = &states;
    Tensor hidden = decoder(f, modules);
    f.hidden_states = nullptr;
    return hidden;
  }

  // The reference's states are an input of the function: their graph stays until backward comes by with nothing.
  Tensor head_and_loss(Parameter& head, const Tensor& hidden, const Tensor& compared) const {
    const ItemScope scope(r_, f_.items.loss_logits);
    Gradients kept = FusedPreference(f_, head, hidden, compared.defined()).run();
    Tensor loss = column(Size(1), DType::fp32, "loss");
    if (!r_.needs_node({&hidden, &head.value})) return loss;
    for (Tensor& gradient : kept)
      if (gradient.defined()) gradient = r_.saved(gradient);
    // More than one micro-batch: the gradient of the loss is not 1, and both are multiplied by it.
    r_.record({&loss}, {r_.edge(hidden), r_.edge(head.value), r_.edge(compared)},
              [kept, scales = f_.plan.accumulate > 1](Recorder& rec, Gradients&) {
                Gradients result = kept;
                for (Tensor& gradient : result)
                  if (scales && gradient.defined()) gradient = rec.empty(gradient.shape(), gradient.dtype(), "scaled");
                return result;
              });
    return loss;
  }
};

}  // namespace

bool runs_liger_loss(const TrainingPlan& plan) {
  if (generations(plan).trl != Generations::Trl::classic) return false;
  if (plan.stage != Stage::dpo && plan.stage != Stage::kto && plan.stage != Stage::grpo) return false;
  if (plan.stage_args.count("use_liger_loss") != 0) return stage_flag(plan, "use_liger_loss");
  return plan.stage == Stage::dpo && plan.implementation == Implementation::liger;
}

Tensor liger_preference(Forward& f, const Architecture& architecture, ModelModules& policy,
                        const ReferenceModel* reference, const Tensor& ids, const Size& counted) {
  return LigerRun(f, architecture, ids, counted).loss(policy, reference);
}

}  // namespace membill
