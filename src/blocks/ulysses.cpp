#include "blocks/ulysses.h"

#include <algorithm>
#include <utility>

#include "blocks/loss.h"
#include "blocks/megatron_router.h"
#include "blocks/sequence_spread.h"

namespace membill {
namespace {

// Tokens first, all heads of this rank's tokens to all tokens of this rank's heads, or back.
class Exchange {
 public:
  explicit Exchange(Forward& f) : r_(f.r), code_(sequence_code(f.plan)), one_row_(f.one_row()) {}

  [[nodiscard]] Tensor to_heads(const Tensor& x) {
    if (code_ == SequenceCode::accelerate) return deepspeed_to_heads(x);
    return by_function(x, code_ == SequenceCode::verl ? 1 : one_row_ ? 1 : 2, code_ == SequenceCode::verl ? 1 : 2);
  }

  [[nodiscard]] Tensor to_tokens(const Tensor& x) {
    if (code_ == SequenceCode::accelerate) return deepspeed_to_tokens(x);
    return code_ == SequenceCode::verl ? by_function(x, 1, 2) : by_function(x, one_row_ ? 1 : 2, 2);
  }

 private:
  // deepspeed 0.19 sequence/layer.py _dim_zero_all_to_all: its backward lays the gradient out first.
  Tensor all_to_all(const Tensor& x) {
    Tensor out = r_.empty(x.shape(), x.dtype(), "exchanged between ranks");
    if (!r_.needs_node({&x})) return out;
    r_.record({&out}, {r_.edge(x)}, [shape = x.shape(), type = x.dtype()](Recorder& rec, Gradients&) {
      const Tensor laid_out = rec.empty(shape, type, "gradient, laid out for the exchange");
      return Gradients{rec.empty(shape, type, "exchanged gradient")};
    });
    return out;
  }

  // deepspeed 0.19 runtime/sequence_parallel/ulysses_sp.py _combine_local_sequences.
  Tensor deepspeed_to_heads(const Tensor& x) {
    const Tensor laid_out = r_.contiguous_copy(x, x.shape(), "heads, laid out for the exchange");
    return all_to_all(laid_out);
  }

  // _partition_global_sequence.
  Tensor deepspeed_to_tokens(const Tensor& x) {
    const Tensor input = one_row_ ? x : r_.contiguous_copy(x, x.shape(), "tokens, laid out for the exchange");
    const Tensor exchanged = all_to_all(input);
    return r_.contiguous_copy(exchanged, x.shape(), "heads of all ranks");
  }

  // An autograd function that keeps nothing: so many copies beside its result, forward and backward.
  Tensor by_function(const Tensor& x, int forward_copies, int backward_copies);

  Recorder& r_;
  SequenceCode code_;
  bool one_row_;
};

Tensor copies_of(Recorder& r, const Shape& shape, DType type, int copies, const char* label) {
  Tensor first = copies > 0 ? r.empty(shape, type, "laid out for the exchange") : Tensor();
  Tensor second = copies > 1 ? r.empty(shape, type, "exchanged between ranks") : Tensor();
  return r.empty(shape, type, label);
}

Tensor Exchange::by_function(const Tensor& x, int forward_copies, int backward_copies) {
  Tensor out = copies_of(r_, x.shape(), x.dtype(), forward_copies, "exchanged between ranks");
  if (!r_.needs_node({&x})) return out;
  r_.record({&out}, {r_.edge(x)}, [shape = x.shape(), type = x.dtype(), backward_copies](Recorder& rec, Gradients&) {
    return Gradients{copies_of(rec, shape, type, backward_copies, "exchanged gradient")};
  });
  return out;
}

// What one rank sees between the exchanges.
struct WholeView {
  Dims dims;
  KindDims kind;
  AttentionShape shape;
};

WholeView whole_view(Forward& f, const AttentionCall& call) {
  SymbolTable& symbols = f.r.symbols();
  const std::int64_t ranks = f.plan.parallel.ulysses;
  WholeView view{f.dims, call.dims, call.shape};
  view.dims.s = f.dims.s * Size(ranks);
  view.dims.N = f.dims.N * Size(ranks);
  view.shape.heads /= ranks;
  view.shape.kv_heads = std::max<std::int64_t>(call.shape.kv_heads / ranks, 1);
  view.kind.a = symbols.ceil_div(call.dims.a, Size(ranks));
  view.kind.k = view.shape.kv_heads == 1 ? Size(1) : symbols.ceil_div(call.dims.k, Size(ranks));
  return view;
}

// Fewer key and value heads than ranks: each is there for several of them.
Tensor repeated_for_ranks(Forward& f, const AttentionCall& call, const Tensor& x) {
  const std::int64_t ranks = f.plan.parallel.ulysses;
  if (call.shape.kv_heads >= ranks) return x;
  return moved(f.r, x, {f.dims.N * Size(ranks), x.width()}, "heads repeated for the ranks");
}

// The positions of all ranks' tokens, in parts and joined.
std::vector<Tensor> gathered_positions(Forward& f) {
  const Size tokens = f.dims.N * Size(f.plan.parallel.ulysses);
  if (sequence_code(f.plan) == SequenceCode::ms_swift)
    return {f.r.empty({tokens, Size(1)}, DType::int64, "positions of all ranks")};
  std::vector<Tensor> positions{f.r.empty({tokens, Size(1)}, DType::int64, "positions of each rank")};
  positions.push_back(f.r.empty({tokens, Size(1)}, DType::int64, "positions of all ranks"));
  return positions;
}

struct HeadTensors {
  Tensor q, k, v;
};

// ulysses_sp.py forward: heads first, one after another.
void lay_out_heads_first(Forward& f, HeadTensors& heads) {
  for (Tensor* x : {&heads.q, &heads.k, &heads.v})
    *x = f.r.contiguous_copy(*x, x->shape(), "heads, tokens of all ranks");
}

Tensor with_shape(Recorder& r, const Tensor& x, const Shape& shape) { return r.reshaped(x, shape); }

}  // namespace

Tensor ulysses_attention(Forward& f, const AttentionCall& call, const Tensor& q, const Tensor& k, const Tensor& v) {
  Recorder& r = f.r;
  const bool deepspeed = sequence_code(f.plan) == SequenceCode::accelerate;
  const WholeView view = whole_view(f, call);
  Exchange exchange(f);
  std::vector<Tensor> positions;
  if (deepspeed) positions = gathered_positions(f);
  HeadTensors heads;
  {
    const Tensor keys = repeated_for_ranks(f, call, k), values = repeated_for_ranks(f, call, v);
    heads = {exchange.to_heads(q), exchange.to_heads(keys), exchange.to_heads(values)};
  }
  if (deepspeed) lay_out_heads_first(f, heads);
  if (!deepspeed) positions = gathered_positions(f);
  Forward inner{f.r, f.model, f.plan, view.dims, f.items, f.stream, f.attention_dropout, f.hidden_dropout};
  AttentionCall local{view.kind, view.shape, call.choice, {}, deepspeed};
  const Tensor output =
      run_whole_attention(inner, local, with_shape(r, heads.q, {view.dims.N * view.kind.a, q.width()}),
                          with_shape(r, heads.k, {view.dims.N * view.kind.k, k.width()}),
                          with_shape(r, heads.v, {view.dims.N * view.kind.k, v.width()}));
  Tensor own = with_shape(r, exchange.to_tokens(output), {f.dims.N, call.dims.a * call.dims.v});
  if (!deepspeed || f.one_row()) return own;
  const Shape shape = own.shape();
  return r.contiguous_copy(std::move(own), shape, "attention output, rows first");
}

Tensor loss_of_gathered_tokens(Forward& f, const Tensor& logits) {
  Recorder& r = f.r;
  if (f.hooks != nullptr) f.hooks->after_logits();
  r.set_items(f.items.loss_probabilities);
  const Tensor labels = r.empty({f.dims.N, Size(1)}, DType::int64, "labels of this rank");
  return negative_log_likelihood(f, r.log_softmax(logits), labels);
}

}  // namespace membill
