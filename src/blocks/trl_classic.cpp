#include "blocks/trl_classic.h"

#include <cstdint>
#include <vector>

#include "blocks/layers.h"

namespace membill {
namespace {

constexpr std::int64_t kEntropyRows = 128;

// selective_log_softmax over 16-bit logits: the log-softmax of each row in its turn, which is kept.
Tensor row_by_row(Forward& f, const Tensor& logits) {
  Recorder& r = f.r;
  const std::int64_t count = r.symbols().evaluate(f.dims.b);
  const Shape row{r.symbols().ceil_div(logits.rows(), f.dims.b), f.dims.V};
  std::vector<Tensor> kept, columns;
  Tensor softmax;  // the loop's variable
  for (std::int64_t i = 0; i < count; ++i) {
    softmax = r.empty(row, logits.dtype(), "log-softmax of a row");
    columns.push_back(r.empty({row.rows, Size(1)}, logits.dtype(), "log-probabilities of a row"));
    if (r.needs_node({&logits})) kept.push_back(r.saved(softmax));
  }
  Tensor result = r.empty({logits.rows(), Size(1)}, logits.dtype(), "log-probabilities");
  if (!r.needs_node({&logits})) return result;
  r.record({&result}, {r.edge(logits)},
           [kept, shape = logits.shape(), row, type = logits.dtype()](Recorder& rec, Gradients&) mutable {
             std::vector<Tensor> gradients;
             for (; !kept.empty(); kept.pop_back()) {
               const Tensor gathered = rec.empty(row, type, "gradient of the gather, zero-filled");
               gradients.push_back(rec.empty(row, type, "gradient of a row's logits"));
             }
             return Gradients{rec.empty(shape, type, "gradient of the logits")};
           });
  return result;
}

}  // namespace

Tensor classic_log_probabilities(Forward& f, const Tensor& logits) {
  Recorder& r = f.r;
  if (logits.dtype() != DType::fp32) return row_by_row(f, logits);
  const Shape column{logits.rows(), Size(1)}, row{r.symbols().ceil_div(logits.rows(), f.dims.b), f.dims.V};
  const Tensor labels = r.empty(column, DType::int64, "shifted labels");
  const Tensor selected = r.empty(column, logits.dtype(), "logits of the labels");
  { const Tensor shifted = r.empty(row, logits.dtype(), "logits of a row less their maximum"); }
  Tensor normaliser = r.empty(column, logits.dtype(), "log of the normaliser");
  Tensor result = r.empty(column, logits.dtype(), "log-probabilities");
  if (!r.needs_node({&logits})) return result;
  r.record({&result}, {r.edge(logits)},
           [kept = r.saved(logits), labels, kept_normaliser = r.saved(normaliser), row,
            count = r.symbols().evaluate(f.dims.b)](Recorder& rec, Gradients&) {
             const Shape& shape = kept.shape();
             std::vector<Tensor> rows;
             for (std::int64_t i = 0; i < count; ++i) {
               const Tensor difference = rec.empty(row, kept.dtype(), "exponent of a row");
               const Tensor power = rec.empty(row, kept.dtype(), "exponential of a row");
               rows.push_back(rec.empty(row, kept.dtype(), "gradient of a row"));
             }
             Tensor stacked = rec.empty(shape, kept.dtype(), "gradient of the logits");
             while (!rows.empty()) rows.pop_back();
             const Tensor gathered = rec.empty(shape, kept.dtype(), "gradient of the gather, zero-filled");
             return Gradients{stacked};
           });
  return result;
}

Tensor policy_weights(Forward& f, const Tensor& logits) {
  Recorder& r = f.r;
  Tensor log_probabilities = r.empty(logits.shape(), logits.dtype(), "log-probabilities of all words");
  const Tensor twice = r.empty(logits.shape(), logits.dtype(), "twice the log-probabilities");
  const Tensor shifted = r.empty(logits.shape(), logits.dtype(), "log-probabilities less their maximum");
  return log_probabilities;
}

void classic_entropies(Forward& f, const Tensor& logits) {
  Recorder& r = f.r;
  const bool grad = r.grad_enabled();
  r.set_grad_enabled(false);
  {
    const Shape chunk{Size(kEntropyRows), f.dims.V};
    const Tensor log_probabilities = r.empty(chunk, logits.dtype(), "log-probabilities of a chunk");
    const Tensor probabilities = r.empty(chunk, logits.dtype(), "probabilities of a chunk");
    const Tensor products = r.empty(chunk, logits.dtype(), "products of a chunk");
  }
  r.set_grad_enabled(grad);
}

Tensor label_smoothed_loss(Forward& f, const Tensor& logits) {
  Recorder& r = f.r;
  const Shape shape{logits.rows() - f.dims.b, f.dims.V}, scalar{Size(1), Size(1)};
  const Tensor shifted = part_of(f, logits, shape, "gradient of the logits, zero-filled");
  const Tensor copy = r.contiguous_copy(shifted, shape, "shifted logits");
  const Tensor labels = r.empty({shape.rows, Size(1)}, DType::int64, "shifted labels");
  const Tensor losses = r.neg(r.log_softmax(copy));
  const Tensor label_losses = r.gather(losses, labels);
  const Tensor smoothed = r.sum_of_rows(losses);
  Tensor loss = r.empty(scalar, DType::fp32, "loss");
  if (!r.needs_node({&losses})) return loss;
  r.record({&loss}, {r.edge(label_losses), r.edge(smoothed)},
           [column = label_losses.shape(), type = losses.dtype()](Recorder& rec, Gradients&) {
             return Gradients{rec.empty(column, type, "gradient of the labels' losses"),
                              rec.empty(column, DType::fp32, "gradient of the smoothed losses")};
           });
  return loss;
}

void classic_supervised_metrics(Forward& f, const Tensor& logits) {
  classic_entropies(f, logits);
  if (f.one_row()) return;  // the shifted part of one row lies as it is
  const Tensor shifted = f.r.empty({f.dims.N - f.dims.b, f.dims.V}, logits.dtype(), "shifted logits for the accuracy");
}

}  // namespace membill
