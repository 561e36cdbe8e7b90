// Cut cross entropy: head and loss in one kernel that never writes logits (cut_cross_entropy 25.1.1, cce.py, cce_backward.py).
#include "blocks/loss.h"

namespace membill {
namespace {

// argsort of the vocabulary's mean logits: sorted values, their places, and those again in 32 bits.
Tensor vocabulary_order(Recorder& r, const Shape& vocabulary) {
  const Tensor sorted = r.empty(vocabulary, DType::fp32, "sorted mean logits");
  const Tensor places = r.empty(vocabulary, DType::int64, "order of the vocabulary");
  return r.empty(vocabulary, DType::int32, "order of the vocabulary");
}

}  // namespace

Tensor cut_loss(Forward& f, Parameter& head, const Tensor& hidden) {
  Recorder& r = f.r;
  const Tensor states = r.autocast_input(hidden);
  const Shape counted{f.dims.N - f.dims.b, Size(1)}, vocabulary{f.dims.V, Size(1)};
  { const Tensor places = r.empty({counted.rows, Size(2)}, DType::int64, "index of the positions that count"); }
  const Tensor valid = r.empty(counted, DType::int32, "positions that count");
  const Tensor normaliser = r.empty(counted, DType::fp32, "log of the normaliser");
  const Tensor mean_logits = r.empty(vocabulary, DType::fp32, "mean logits of the vocabulary");
  const Tensor losses = r.empty(counted, DType::fp32, "losses of the rows");
  Tensor loss = r.empty({Size(1), Size(1)}, DType::fp32, "loss");
  if (!r.needs_node({&states, &head.value})) return loss;
  r.record({&loss}, {r.edge(states), r.edge(head.value)},
           [kept = r.saved(states), valid, normaliser, mean_logits, vocabulary, weight = head.value.shape(),
            type = head.value.dtype(), to_states = states.requires_grad(), to_head = head.value.requires_grad(),
            gradients = f.items.gradients](Recorder& rec, Gradients&) {
             const Tensor order = vocabulary_order(rec, vocabulary);
             Gradients result(2);
             Tensor of_states = rec.empty(kept.shape(), kept.dtype(), "gradient of the final states");
             if (to_states) result[0] = std::move(of_states);
             if (!to_head) return result;
             Tensor of_head = rec.empty(weight, kept.dtype(), "gradient of the head", gradients);
             result[1] =
                 kept.dtype() == type ? std::move(of_head) : rec.empty(weight, type, "gradient of the head", gradients);
             return result;
           });
  return f.plan.loop == Loop::trainer ? r.mul_scalar(std::move(loss), "loss") : loss;
}

}  // namespace membill
