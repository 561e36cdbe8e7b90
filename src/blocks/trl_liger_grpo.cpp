#include "blocks/trl_liger_grpo.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "blocks/layers.h"

namespace membill {
namespace {

constexpr std::int64_t kRows = 2048,
                       kWords = 4096;  // _SELECTIVE_LOGPROB_SEQ_CHUNK_SIZE, _SELECTIVE_LOGPROB_VOCAB_CHUNK_SIZE

// liger_kernel 0.8.5 chunked_loss/fused_linear_ppo.py: the loss of one sequence after the other, its logits in tiles that are made
// again for the gradients, all of it inside of one function's forward.
class FusedPolicyLoss {
 public:
  FusedPolicyLoss(Forward& f, Parameter& head, const Tensor& hidden) : r_(f.r), f_(f), head_(head), hidden_(hidden) {
    tokens_ = r_.symbols().evaluate(r_.symbols().ceil_div(hidden.rows(), f.dims.b));
    words_ = r_.symbols().evaluate(f.dims.V);
  }

  // The gradients of the hidden states and of the head, if it trains, which the function keeps for its backward.
  Gradients run() {
    Gradients result(2);
    const DType type = head_.value.dtype();
    if (head_.value.requires_grad())
      result[1] = r_.empty(head_.value.shape(), type, "gradient of the head", f_.items.gradients);
    std::vector<Tensor> parts;
    const std::int64_t sequences = r_.symbols().evaluate(f_.dims.b);
    for (std::int64_t i = 0; i < sequences; ++i) parts.push_back(sequence());
    result[0] = r_.empty(hidden_.shape(), hidden_.dtype(), "gradient of the final hidden states");
    return result;
  }

 private:
  Tensor sequence() {
    const Tensor log_probabilities = column(tokens_), normaliser = column(tokens_);
    in_tiles([&](std::int64_t rows, std::int64_t words, Tile& tile) { forward_tile(rows, words, tile); });
    const Shape shape{Size(tokens_), f_.dims.h};
    const Tensor wide = r_.empty(shape, DType::fp32, "fp32 gradient of a sequence's final states");
    Tensor wide_head, part;
    if (head_.value.requires_grad())
      wide_head = r_.empty(head_.value.shape(), DType::fp32, "fp32 gradient of the head");
    in_tiles([&](std::int64_t rows, std::int64_t words, Tile& tile) { backward_tile(rows, words, tile); });
    Tensor result = r_.empty(shape, hidden_.dtype(), "gradient of a sequence's final states");
    if (wide_head.defined()) part = r_.empty(head_.value.shape(), head_.value.dtype(), "gradient of the head, a part");
    return result;
  }

  // What the loop's variables hold of the tile before.
  struct Tile {
    Tensor logits, exponentials, gradient;
  };

  template <typename Run>
  void in_tiles(const Run& run) {
    for (std::int64_t row = 0; row < tokens_; row += kRows) {
      Tile tile;
      for (std::int64_t word = 0; word < words_; word += kWords)
        run(std::min(kRows, tokens_ - row), std::min(kWords, words_ - word), tile);
    }
  }

  void logits_of(const Shape& shape, Tile& tile) {
    Tensor wide;
    {
      const Tensor product = r_.empty(shape, hidden_.dtype(), "logits of a tile");
      r_.use_matmul_workspace();
      wide = r_.empty(shape, DType::fp32, "fp32 logits of a tile");
    }
    tile.logits = std::move(wide);
    const Tensor shifted = r_.empty(shape, DType::fp32, "logits less their maximum");
    tile.exponentials = r_.empty(shape, DType::fp32, "exponentials of a tile");
  }

  void forward_tile(std::int64_t rows, std::int64_t words, Tile& tile) { logits_of({Size(rows), Size(words)}, tile); }

  void backward_tile(std::int64_t rows, std::int64_t words, Tile& tile) {
    const Shape shape{Size(rows), Size(words)}, weight{Size(words), f_.dims.h}, states{Size(rows), f_.dims.h};
    logits_of(shape, tile);
    tile.gradient = r_.empty(shape, DType::fp32, "gradient of a tile's logits");
    {
      const Tensor wide = r_.empty(weight, DType::fp32, "fp32 weights of a tile");
      const Tensor product = r_.empty(states, DType::fp32, "gradient of a tile's states");
      r_.use_matmul_workspace();
    }
    if (!head_.value.requires_grad()) return;
    const Tensor wide = r_.empty(states, DType::fp32, "fp32 states of a tile");
    const Tensor product = r_.empty(weight, DType::fp32, "gradient of a tile's weights");
    r_.use_matmul_workspace();
  }

  Tensor column(std::int64_t rows) { return r_.empty({Size(rows), Size(1)}, DType::fp32, "log-probabilities"); }

  Recorder& r_;
  Forward& f_;
  Parameter& head_;
  const Tensor& hidden_;
  std::int64_t tokens_ = 0, words_ = 0;
};

}  // namespace

Tensor liger_policy_loss(Forward& f, Parameter& head, const Tensor& hidden) {
  Recorder& r = f.r;
  const ItemScope scope(r, f.items.loss_logits);
  Gradients kept = FusedPolicyLoss(f, head, hidden).run();
  Tensor loss = r.empty({Size(1), Size(1)}, DType::fp32, "loss");
  if (!r.needs_node({&hidden, &head.value})) return loss;
  for (Tensor& gradient : kept)
    if (gradient.defined()) gradient = r.saved(gradient);
  // More than one micro-batch: the gradient of the loss is not 1, and both are multiplied by it.
  r.record({&loss}, {r.edge(hidden), r.edge(head.value)},
           [kept, scales = f.plan.accumulate > 1](Recorder& rec, Gradients&) {
             Gradients result = kept;
             for (Tensor& gradient : result)
               if (scales && gradient.defined()) gradient = rec.empty(gradient.shape(), gradient.dtype(), "scaled");
             return result;
           });
  return loss;
}

}  // namespace membill
