#include "blocks/tensor_parallel_head.h"

#include <utility>
#include <vector>

#include "blocks/layers.h"
#include "blocks/loss.h"

namespace membill {

bool gathers_split_logits(const TrainingPlan& plan) {
  return plan.parallel.tp > 1 && plan.engine == Engine::deepspeed && plan.implementation == Implementation::hf;
}

Tensor with_gathered_logits(Forward& f, Tensor logits) {
  Recorder& r = f.r;
  const Tensor part = std::move(logits);
  const Shape whole{part.rows(), f.dims.V};
  const Tensor gathered = r.empty(whole, part.dtype(), "logits of all ranks");
  Tensor out = r.empty(whole, part.dtype(), "logits");
  if (!r.needs_node({&part})) return out;
  r.record({&out}, {r.edge(part)}, [shape = part.shape(), type = part.dtype()](Recorder& rec, Gradients&) {
    return Gradients{rec.empty(shape, type, "gradient of this rank's logits")};
  });
  return out;
}

bool keeps_split_vocabulary(const ModelSpec& model, const TrainingPlan& plan) {
  return model.tied_embeddings && gathers_split_logits(plan);
}

Tensor embed_own_words(Forward& f, Module& words, const Tensor& ids) {
  Recorder& r = f.r;
  const Tensor mask = r.empty({ids.rows(), Size(1)}, DType::boolean, "tokens whose words others hold");
  const Tensor own = r.empty({ids.rows(), Size(1)}, DType::int64, "places of this rank's words");
  const Tensor found = apply_embedding(f, words, own);
  Tensor out = r.empty(found.shape(), found.dtype(), "embedding output");
  if (!r.needs_node({&found})) return out;
  const Tensor kept = r.saved(mask);
  r.record({&out}, {r.edge(found)}, [kept, shape = found.shape(), type = found.dtype()](Recorder& rec, Gradients&) {
    return Gradients{rec.empty(shape, type, "gradient of this rank's words")};
  });
  return out;
}

namespace {

// _VocabParallelCrossEntropy: the loss of each token.
Tensor losses_of_split_logits(Forward& f, const Tensor& logits) {
  Recorder& r = f.r;
  const Shape row{logits.rows(), Size(1)};
  const Tensor wide = r.empty(logits.shape(), DType::fp32, "fp32 copy of this rank's logits");
  const Tensor largest = r.empty(row, DType::fp32, "largest logit of all ranks");
  r.set_items(f.items.loss_probabilities);
  Tensor exponentials;
  {
    const Tensor less = r.empty(logits.shape(), DType::fp32, "logits less the largest");
    exponentials = r.empty(logits.shape(), DType::fp32, "exponentials of the logits");
  }
  const Tensor sum = r.empty(row, DType::fp32, "sum of exponentials");
  const Tensor valid = r.empty(row, DType::boolean, "labels that count"),
               own = r.empty(row, DType::boolean, "own labels");
  const Tensor places = r.empty(row, DType::int64, "places of the labels");
  Tensor out = r.empty(row, DType::fp32, "loss of each token");
  if (!r.needs_node({&logits})) return out;
  const std::vector<Tensor> kept{r.saved(exponentials), r.saved(sum), r.saved(places), r.saved(own), r.saved(valid)};
  r.record({&out}, {r.edge(logits)}, [kept, type = logits.dtype()](Recorder& rec, Gradients&) {
    const Tensor gradient = rec.empty(kept.front().shape(), DType::fp32, "gradient of the logits in fp32");
    return Gradients{rec.empty(gradient.shape(), type, "gradient of this rank's logits")};
  });
  return out;
}

}  // namespace

Tensor loss_of_split_logits(Forward& f, const Tensor& logits, const Tensor& labels) {
  Recorder& r = f.r;
  const Tensor targets = r.empty({f.dims.N - f.dims.b, Size(1)}, labels.dtype(), "shifted labels");
  r.set_items(f.items.loss_upcast);
  const Tensor part = contiguous_without_last(f, logits, {f.dims.N - f.dims.b, logits.width()});
  return r.mean_of_rows(r.view(losses_of_split_logits(f, part), {Size(1), f.dims.N - f.dims.b}));
}

}  // namespace membill
