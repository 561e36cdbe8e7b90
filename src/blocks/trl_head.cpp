#include "blocks/trl_head.h"

#include <algorithm>

#include "blocks/generations.h"
#include "blocks/parameter_reader.h"
#include "blocks/stage_args.h"

namespace membill {
namespace {

constexpr std::int64_t kTileTokens = 4096, kTileWords = 32768;

// The tiles that one pass over counted positions and vocabulary multiplies.
class Tiles {
 public:
  Tiles(Recorder& r, const Size& counted, const Shape& head, DType input, DType weight, DType compute)
      : r_(r), counted_(counted), head_(head), input_(input), weight_(weight), compute_(compute) {}

  [[nodiscard]] Tensor buffer() const {
    return r_.empty({largest_rows(), Size(kTileWords)}, compute_, "tile of the logits");
  }

  // `products` matrix products a tile, over 16-bit copies where the operands are wider. A copy that is a variable of the loop lives
  // until the next has been made: of the rows, and in backward of the head.
  void multiply(int products, bool names_head) const {
    const std::int64_t tokens = r_.symbols().evaluate(counted_), words = r_.symbols().evaluate(head_.rows);
    Tensor input, named;
    for (std::int64_t first = 0; first < tokens; first += kTileTokens) {
      const Size rows = tokens - first >= kTileTokens ? largest_rows() : rest(tokens - first);
      input = copy({rows, head_.width}, input_, "16-bit rows of a tile");
      for (std::int64_t word = 0; word < words; word += kTileWords) {
        const Tensor weight =
            copy({Size(std::min(kTileWords, words - word)), head_.width}, weight_, "16-bit head of a tile");
        if (names_head) named = weight;
        for (int i = 0; i < products; ++i) r_.use_matmul_workspace();
      }
    }
  }

 private:
  [[nodiscard]] Size largest_rows() const {
    return r_.symbols().evaluate(counted_) <= kTileTokens ? counted_ : Size(kTileTokens);
  }
  [[nodiscard]] Size rest(std::int64_t tokens) const {
    return r_.symbols().evaluate(counted_) == tokens ? counted_ : Size(tokens);
  }
  [[nodiscard]] Tensor copy(const Shape& shape, DType type, const char* label) const {
    return type == compute_ ? Tensor() : r_.empty(shape, compute_, label);
  }

  Recorder& r_;
  Size counted_;
  Shape head_;
  DType input_, weight_, compute_;
};

class FusedHead {
 public:
  FusedHead(Forward& f, Module& head, const Size& counted)
      : f_(f), r_(f.r), head_(head), counted_(counted), positions_(f.dims.N - f.dims.b) {}

  FusedHeadResult run(Tensor hidden, const FusedHeadOutputs& outputs) {
    FusedHeadResult result;
    result.counts = r_.empty({positions_, Size(1)}, DType::boolean, "positions that count");
    const Tensor rows = counted_rows(hidden), targets = counted_targets();
    Tensor vector = log_probabilities(rows, targets, outputs, result);
    result.log_probabilities = scattered(std::move(vector), result.counts);
    for (Tensor* extra : {&result.entropy, &result.log_sum_of_squares, &result.mean_logits, &result.top1})
      if (extra->defined()) *extra = scattered(*extra, result.counts);
    return result;
  }

 private:
  [[nodiscard]] Tensor vector(const char* label, DType type = DType::fp32) const {
    return r_.empty({counted_, Size(1)}, type, label);
  }
  static Tensor index_of(Recorder& r, const Size& counted) {
    return r.empty({counted, Size(2)}, DType::int64, "index of the positions that count");
  }

  // hidden[:, :-1][mask]
  Tensor counted_rows(const Tensor& hidden) {
    const Tensor index = index_of(r_, counted_);
    Tensor rows = r_.empty({counted_, f_.dims.h}, hidden.dtype(), "final states of the positions that count");
    if (!r_.needs_node({&hidden})) return rows;
    r_.record({&rows}, {r_.edge(hidden)},
              [counted = counted_, whole = hidden.shape(), part = Shape{positions_, f_.dims.h}, type = hidden.dtype()](
                  Recorder& r, Gradients&) {
                Tensor scattered = r.empty(part, type, "gradient of the shifted final states, zero-filled");
                { const Tensor places = index_of(r, counted); }
                Tensor result = r.empty(whole, type, "gradient of the final states, zero-filled");
                return Gradients{result};
              });
    return rows;
  }

  Tensor counted_targets() {
    const Tensor index = index_of(r_, counted_);
    return vector("labels that count", DType::int64);
  }

  Tensor log_probabilities(const Tensor& rows, const Tensor& targets, const FusedHeadOutputs& outputs,
                           FusedHeadResult& result) {
    const DType compute = r_.autocast().value_or(rows.dtype());
    const Shape weight = head_.weight.value.shape();
    const Tiles tiles(r_, counted_, weight, rows.dtype(), head_.weight.value.dtype(), compute);
    Tensor log_z, log_probs;
    const Tensor whole = read_parameter(f_, head_.weight);
    {
      const Tensor highest = vector("running maximum"), sum = vector("running sum"), weighted = vector("running sum");
      const Tensor squares = vector("running sum"), logits = vector("running sum"), before = vector("running maximum");
      const Tensor target = vector("logit of the label");
      {
        const Tensor tile = tiles.buffer();
        tiles.multiply(1, false);
        log_z = vector("log of the normaliser");
        log_probs = vector("log-probabilities");
        extras(outputs, result);
      }
    }
    if (!r_.needs_node({&rows, &head_.weight.value})) return log_probs;
    const Tensor kept_rows = r_.saved(rows), kept_targets = r_.saved(targets), kept_log_z = r_.saved(log_z),
                 kept_entropy = result.entropy.defined() ? r_.saved(result.entropy) : kept_log_z;
    r_.record({&log_probs}, {r_.edge(rows), r_.edge(head_.weight.value)},
              [kept_rows, whole, kept_targets, kept_log_z, kept_entropy, tiles, weight, to_rows = rows.requires_grad(),
               to_head = head_.weight.value.requires_grad(), type = head_.weight.value.dtype(),
               gradients = f_.items.gradients](Recorder& r, Gradients&) {
                Gradients sums(2), gradient(2);
                const DType fp32 = DType::fp32;
                if (to_rows) sums[0] = r.empty(kept_rows.shape(), fp32, "gradient of the counted states, fp32");
                if (to_head) sums[1] = r.empty(weight, fp32, "gradient of the head, fp32");
                const Tensor tile = tiles.buffer();
                tiles.multiply(1 + (to_rows ? 1 : 0) + (to_head ? 1 : 0), true);
                gradient[0] = to_rows && kept_rows.dtype() != fp32
                                  ? r.empty(kept_rows.shape(), kept_rows.dtype(), "gradient of the counted states")
                                  : std::move(sums[0]);
                gradient[1] = to_head && type != fp32 ? r.empty(weight, type, "gradient of the head", gradients)
                                                      : std::move(sums[1]);
                return gradient;
              });
    return log_probs;
  }

  void extras(const FusedHeadOutputs& outputs, FusedHeadResult& result) const {
    if (outputs.entropy) {
      const Tensor ratio = vector("ratio");
      result.entropy = vector("entropy");
    }
    if (outputs.log_sum_of_squares) result.log_sum_of_squares = vector("log of the sum of squares");
    if (outputs.mean_logits) result.mean_logits = vector("mean logits");
    if (outputs.top1) result.top1 = vector("label is the likeliest", DType::boolean);
  }

  // zeros(mask.shape).masked_scatter(mask, x): a fresh tensor, scattered into a copy of it.
  Tensor scattered(Tensor x, const Tensor& counts) {
    const Shape shape{positions_, Size(1)};
    const Tensor zeros = r_.empty(shape, x.dtype(), "zeros");
    Tensor out = r_.empty(shape, x.dtype(), "by position");
    const Tensor prefix = r_.empty(shape, DType::int64, "prefix sums of the mask");
    if (!r_.needs_node({&x})) return out;
    r_.record({&out}, {r_.edge(x)},
              [kept = r_.saved(counts), counted = counted_, type = x.dtype()](Recorder& r, Gradients&) {
                const Tensor index = index_of(r, counted);
                return Gradients{r.empty({counted, Size(1)}, type, "gradient of the counted positions")};
              });
    return out;
  }

  Forward& f_;
  Recorder& r_;
  Module& head_;
  Size counted_, positions_;
};

}  // namespace

bool reads_head(const TrainingPlan& plan) {
  const Stage stage = plan.stage;
  const bool fused = is_supervised(plan) || stage == Stage::dpo || stage == Stage::kto || stage == Stage::grpo;
  return fused && !smooths_labels(plan) && generations(plan).trl == Generations::Trl::fused;
}

FusedHeadResult fused_log_probabilities(Forward& f, Module& head, Tensor hidden, const Size& counted,
                                        const FusedHeadOutputs& outputs) {
  const ItemScope scope(f.r, f.items.loss_logits);
  return FusedHead(f, head, counted).run(std::move(hidden), outputs);
}

}  // namespace membill
