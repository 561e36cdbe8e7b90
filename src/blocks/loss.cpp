#include "blocks/loss.h"

#include "blocks/generations.h"
#include "blocks/sequence_spread.h"
#include "blocks/ulysses.h"

namespace membill {
namespace {

// logits[..., :-1, :]: a view, whose gradient is a zero-filled tensor of the whole.
Tensor without_last_position(Recorder& r, const Tensor& logits, const Shape& shape) {
  Tensor part = r.view(logits, shape);
  if (!r.needs_node({&logits})) return part;
  r.record({&part}, {r.edge(logits)}, [whole = logits.shape(), type = logits.dtype()](Recorder& rec, Gradients&) {
    return Gradients{rec.empty(whole, type, "gradient of the shifted logits, zero-filled")};
  });
  return part;
}

Tensor loss_in_model(Forward& f, Tensor& logits, const Tensor& labels) {
  Recorder& r = f.r;
  const Tensor shifted_logits = shifted_in_model(f, logits);
  const Tensor shifted_labels = r.empty({shifted_logits.rows(), Size(1)}, labels.dtype(), "shifted labels");
  r.set_items(f.items.loss_probabilities);
  return negative_log_likelihood(f, r.log_softmax(shifted_logits), shifted_labels);
}

// `logits`: in fp32, which the loss function holds beside its copy of all positions but the last.
Tensor loss_of_shifted(Forward& f, const Tensor& logits, const Tensor& labels) {
  Recorder& r = f.r;
  const Shape shifted{f.dims.N - f.dims.b, f.dims.V};
  const Tensor copy = contiguous_without_last(f, logits, shifted);
  const Tensor targets = r.empty({shifted.rows, Size(1)}, labels.dtype(), "shifted labels");
  r.set_items(f.items.loss_probabilities);
  return negative_log_likelihood(f, r.log_softmax(copy), targets);
}

// Cross entropy of the whole logits, fp32 a chunk at a time (axolotl's monkeypatch/loss/chunked.py): what is kept is as large.
Tensor loss_in_chunks(Forward& f, const Tensor& logits, const Tensor& labels) {
  Recorder& r = f.r;
  Tensor total;
  for (const Tensor& chunk : chunks_of(f, logits, loss_chunks(f), "gradient of the logits")) {
    r.set_items(f.items.loss_upcast);
    const Tensor rows = f.one_row() ? chunk : r.contiguous_copy(chunk, chunk.shape(), "contiguous logits of a chunk");
    const Tensor wide = r.cast(rows, DType::fp32);
    r.set_items(f.items.loss_probabilities);
    Tensor part = negative_log_likelihood(f, r.log_softmax(wide), labels);
    total = total.defined() ? r.add(std::move(total), std::move(part)) : std::move(part);
  }
  return total;
}

}  // namespace

Tensor contiguous_without_last(Forward& f, const Tensor& logits, const Shape& shape) {
  Tensor part = without_last_position(f.r, logits, shape);
  return f.one_row() ? part : f.r.contiguous_copy(std::move(part), shape, "shifted logits");
}

std::int64_t loss_chunks(const Forward& f) { return ceil_div(f.r.symbols().evaluate(f.dims.N), f.plan.loss_chunk); }

std::vector<Tensor> chunks_of(Forward& f, const Tensor& whole, std::int64_t count, const char* gradient) {
  Recorder& r = f.r;
  const Shape shape{r.symbols().ceil_div(whole.rows(), Size(count)), whole.width()};
  std::vector<Tensor> chunks(static_cast<std::size_t>(count));
  std::vector<Tensor*> outputs;
  outputs.reserve(chunks.size());
  for (Tensor& chunk : chunks) {
    chunk = r.view(whole, shape);
    outputs.push_back(&chunk);
  }
  if (!r.needs_node({&whole})) return chunks;
  r.record(outputs, {r.edge(whole)}, [all = whole.shape(), type = whole.dtype(), gradient](Recorder& rec, Gradients&) {
    return Gradients{rec.empty(all, type, gradient)};
  });
  return chunks;
}

Tensor negative_log_likelihood(Forward& f, const Tensor& log_probabilities, const Tensor& targets) {
  Recorder& r = f.r;
  const bool node = r.needs_node({&log_probabilities});
  Tensor kept = node ? r.saved(log_probabilities) : Tensor(), kept_targets = node ? r.saved(targets) : Tensor();
  const Shape scalar{Size(1), Size(1)};
  Tensor loss = r.empty(scalar, DType::fp32, "loss");
  Tensor total_weight = r.empty(scalar, DType::fp32, "loss weight");
  if (!node) return loss;
  Tensor kept_weight = r.saved(total_weight);
  r.record({&loss}, {r.edge(log_probabilities)},
           [kept, kept_targets, kept_weight, shape = log_probabilities.shape(), type = log_probabilities.dtype()](
               Recorder& rec, Gradients&) {
             return Gradients{rec.empty(shape, type, "gradient of the log-probabilities")};
           });
  return loss;
}

Tensor plain_loss(Forward& f, const Tensor& logits, const Tensor& labels) {
  Recorder& r = f.r;
  r.set_items(f.items.loss_probabilities);
  r.pause_autocast();
  Tensor probabilities = r.log_softmax(logits);
  r.resume_autocast();
  return negative_log_likelihood(f, r.autocast_fp32(std::move(probabilities)), labels);
}

Tensor shifted_in_model(Forward& f, Tensor& logits) {
  Recorder& r = f.r;
  r.set_items(f.items.loss_upcast);
  logits = r.cast(std::move(logits), DType::fp32);
  const Shape shifted{f.dims.N - f.dims.b, f.dims.V};
  return contiguous_without_last(f, logits, shifted);
}

Tensor causal_lm_loss(Forward& f, Tensor& logits, const Tensor& labels) {
  if (gathers_token_losses(f.plan)) return loss_of_gathered_tokens(f, logits);
  if (generations(f.plan).logits_upcast_in_model) return loss_in_model(f, logits, labels);
  if (f.plan.loss == LossKind::chunked) return loss_in_chunks(f, logits, labels);
  Recorder& r = f.r;
  const Size& V = f.dims.V;
  r.set_items(f.items.loss_upcast);
  const Tensor flat = r.view(r.cast(logits, DType::fp32), {f.dims.N, V});
  if (generations(f.plan).logits_shifted_in_loss) return loss_of_shifted(f, flat, labels);
  r.set_items(f.items.loss_probabilities);
  if (has_shifted_labels(f.plan)) return negative_log_likelihood(f, r.log_softmax(flat), labels);
  const Tensor padded = r.empty({f.dims.N + f.dims.b, Size(1)}, labels.dtype(), "padded labels");
  const Tensor shifted = r.empty({f.dims.N, Size(1)}, labels.dtype(), "shifted labels");
  return negative_log_likelihood(f, r.log_softmax(flat), shifted);
}

}  // namespace membill
