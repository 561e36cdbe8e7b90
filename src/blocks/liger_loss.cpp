// Liger's losses: ops/fused_linear_cross_entropy.py and ops/cross_entropy.py of liger-kernel 0.8.5.
#include "blocks/generations.h"
#include "blocks/liger_ops.h"
#include "blocks/loss.h"

#include <algorithm>

namespace membill {
namespace {

const Shape kScalar{Size(1), Size(1)};

std::int64_t ceiling(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Rows of logits at a time: about as many logits as the hidden states have elements, a power of two.
std::int64_t chunk_rows(std::int64_t tokens, std::int64_t vocab, std::int64_t hidden) {
  const std::int64_t wanted = ceiling(tokens, ceiling(vocab, hidden));
  std::int64_t rows = 1;
  while (rows < wanted) rows *= 2;
  return std::min(rows, tokens);
}

// LigerForCausalLMLoss and ForCausalLMLoss: labels padded by one, then shifted.
Tensor shift(Forward& f, const Tensor& labels, Tensor& padded) {
  padded = f.r.empty({f.dims.N + f.dims.b, Size(1)}, labels.dtype(), "padded labels");
  return f.r.empty({f.dims.N, Size(1)}, labels.dtype(), "shifted labels");
}

// torch.equal(gradient, 1.0): a scalar for the time of the comparison.
void compare_with_one(Recorder& r) { const Tensor one = r.empty(kScalar, DType::fp32, "one"); }

class FusedLoss {
 public:
  FusedLoss(Forward& f, Parameter& head, const Tensor& hidden)
      : r_(f.r), f_(f), head_(head), hidden_(hidden), type_(hidden.dtype()) {
    const DType compute = r_.autocast().value_or(type_);
    in_place_ = type_ == head.value.dtype() && type_ == compute;
    logits_type_ = compute;
    const std::int64_t tokens = r_.symbols().evaluate(f.dims.N);
    rows_ = chunk_rows(tokens, r_.symbols().evaluate(f.dims.V), r_.symbols().evaluate(f.dims.h));
    chunk_ =
        rows_ == tokens ? f.dims.N : r_.symbols().define_next("C", "rows of logits at a time in Liger's loss", rows_);
    tokens_ = tokens;
  }

  // The gradients of the hidden states and of the head, as far as they train.
  Gradients run(Tensor& loss) {
    const bool to_hidden = hidden_.requires_grad(), to_head = to_hidden && head_.value.requires_grad();
    Gradients result(2);
    result[0] = r_.empty(hidden_.shape(), type_, "gradient of the final hidden states", f_.items.loss_logits.backward);
    if (to_head)
      result[1] = r_.empty(head_.value.shape(), head_.value.dtype(), "gradient of the head", f_.items.gradients);
    const Tensor losses = r_.empty({f_.dims.N, Size(1)}, DType::fp32, "losses of the rows");
    const Tensor mask = r_.empty({f_.dims.N, Size(1)}, DType::boolean, "mask of the labels");
    {
      const Tensor storage = in_place_ ? r_.empty({chunk_, f_.dims.V}, type_, "logits of a chunk") : Tensor();
      for (std::int64_t first = 0; first < tokens_; first += rows_) {
        const Size rows = tokens_ - first >= rows_ ? chunk_ : Size(tokens_ - first);
        chunk(rows, to_hidden, result[1]);
      }
    }
    loss = r_.empty(kScalar, DType::fp32, "loss");
    return result;
  }

 private:
  Tensor product(const Shape& shape, DType type, const char* label) {
    Tensor result = r_.empty(shape, type, label);
    r_.use_matmul_workspace();
    return result;
  }

  // A copy in autocast's type, made at each use.
  Tensor converted(const Shape& shape, DType from) {
    return from == logits_type_ ? Tensor() : r_.empty(shape, logits_type_, "copy in another type");
  }

  void chunk(const Size& rows, bool to_hidden, const Tensor& head_gradient) {
    const Shape inputs{rows, f_.dims.h};
    Tensor logits;
    if (in_place_) {
      r_.use_matmul_workspace();
    } else {
      const Tensor weight = converted(head_.value.shape(), head_.value.dtype()), input = converted(inputs, type_);
      logits = product({rows, f_.dims.V}, logits_type_, "logits of a chunk");
    }
    if (!to_hidden) return;
    if (in_place_) {
      r_.use_matmul_workspace();
    } else {
      const Tensor weight = r_.working_copy(head_, logits_type_);
      const Tensor gradient = product(inputs, logits_type_, "gradient of a chunk");
    }
    if (head_gradient.defined()) add_head_gradient(inputs, head_gradient);
  }

  void add_head_gradient(const Shape& inputs, const Tensor& gradient) {
    if (logits_type_ != DType::fp32) {
      const Tensor input = converted(inputs, type_);
      r_.use_matmul_workspace();
      return;
    }
    const Tensor part = product(gradient.shape(), DType::fp32, "gradient of the head, one chunk's part");
  }

  Recorder& r_;
  Forward& f_;
  Parameter& head_;
  const Tensor& hidden_;
  DType type_, logits_type_ = DType::fp32;
  bool in_place_ = false;  // the logits are made in one buffer by torch.mm(out=...)
  std::int64_t rows_ = 0, tokens_ = 0;
  Size chunk_;
};

// The Trainer's loss is a sum over the tokens of all micro-batches.
Tensor finish(Forward& f, Tensor loss) {
  return f.plan.loop == Loop::trainer ? f.r.mul_scalar(std::move(loss), "loss") : loss;
}

}  // namespace

Tensor liger_fused_loss(Forward& f, Parameter& head, const Tensor& hidden, const Tensor& labels) {
  Recorder& r = f.r;
  Tensor padded;
  const Tensor shifted = shift(f, labels, padded);
  const bool node = r.needs_node({&hidden, &head.value});
  Tensor loss;
  const Gradients gradients = FusedLoss(f, head, hidden).run(loss);
  if (!node) return loss;
  r.record({&loss}, {r.edge(hidden), r.edge(head.value)}, [gradients](Recorder& rec, Gradients&) {
    compare_with_one(rec);
    return Gradients{rec.detach(gradients[0]), rec.detach(gradients[1])};
  });
  return finish(f, std::move(loss));
}

Tensor liger_whole_loss(Forward& f, Tensor logits, const Tensor& labels) {
  Recorder& r = f.r;
  r.set_items(f.items.loss_upcast);
  const bool in_model = generations(f.plan).logits_upcast_in_model;
  const Tensor wide =
      in_model ? shifted_in_model(f, logits) : r.view(r.cast(logits, DType::fp32), {f.dims.N, f.dims.V});
  r.set_items(f.items.loss_probabilities);
  Tensor padded;
  const Tensor shifted = shift(f, labels, padded);
  const Shape column{f.dims.N, Size(1)};
  const Tensor losses = r.empty(column, DType::fp32, "losses of the rows");
  const Tensor mask = r.empty(column, DType::boolean, "mask of the labels");
  { const Tensor counted = r.empty(column, labels.dtype(), "labels that count"); }
  Tensor loss = r.empty(kScalar, DType::fp32, "loss");
  if (!r.needs_node({&wide})) return loss;
  r.record({&loss}, {r.edge(wide)}, [kept = r.detach(wide)](Recorder& rec, Gradients&) {
    compare_with_one(rec);
    return Gradients{rec.detach(kept)};
  });
  return finish(f, std::move(loss));
}

}  // namespace membill
