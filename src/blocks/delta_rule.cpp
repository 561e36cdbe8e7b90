#include "blocks/delta_rule.h"

#include "blocks/layers.h"

namespace membill {
namespace {

constexpr std::int64_t kScanChunk = 64;

// One call of the rule, with the names of its code.
class DeltaRule {
 public:
  DeltaRule(Forward& f, const LayerContext& layer)
      : f_(f), r_(f.r), d_(layer.dims.linear), shape_(*layer.kind.linear_attention) {
    const Size chunks = r_.symbols().ceil_div(f.dims.s, Size(kScanChunk));
    chunks_ = r_.symbols().evaluate(chunks);
    heads_ = f.dims.b * d_.value_heads;
    rows_ = heads_ * f.dims.s;
    batches_ = heads_ * chunks;
    padded_ = batches_ * Size(kScanChunk);
  }

  Tensor run(DeltaRuleInputs in, Tensor* last_state) {
    const DType type = in.query.dtype();
    lies_by_token_ = type == DType::fp32 && r_.symbols().equal(padded_, rows_);
    widen(in);
    prepare(in);
    within_chunks();
    Tensor output = scan(last_state);
    output = r_.contiguous_copy(std::move(output), {padded_, d_.value_width}, "output of the chunks, in order");
    if (!r_.symbols().equal(padded_, rows_))
      output = part_of(f_, output, {rows_, d_.value_width}, "gradient of the output, padded");
    return r_.cast(output, type);
  }

 private:
  // Key heads for each value head, everything in fp32, a head's tokens together.
  void widen(DeltaRuleInputs& in) {
    if (shape_.key_heads != shape_.value_heads) {
      in.query = repeated(in.query);
      in.key = repeated(in.key);
    }
    const auto wide = [&](const Tensor& x) { return r_.cast(x, DType::fp32); };
    Tensor query = wide(in.query), key = wide(in.key), value = wide(in.value);
    Tensor beta = wide(in.beta), decay = wide(in.decay);
    in = {std::move(query), std::move(key), std::move(value), std::move(beta), std::move(decay)};
  }

  Tensor repeated(const Tensor& x) { return r_.contiguous_copy(x, {rows_, d_.key_width}, "repeated key heads"); }

  Tensor l2_norm(const Tensor& x) {
    Tensor inverse;
    {
      const Tensor squares = r_.mul(x, x, "squares");
      inverse = r_.sum_of_rows(squares);
    }
    inverse = r_.rsqrt(r_.add_scalar(std::move(inverse)));
    return r_.mul(x, inverse, "normalised");
  }

  // Norms, padding to whole chunks, the products with beta.
  void prepare(DeltaRuleInputs& in) {
    query_ = l2_norm(in.query);
    in.query.drop();
    key_ = l2_norm(in.key);
    in.key.drop();
    query_ = r_.mul_scalar(std::move(query_), "scaled queries");
    {
      Tensor query = r_.pad(query_, {padded_, d_.key_width}), key = r_.pad(key_, {padded_, d_.key_width});
      Tensor value = r_.pad(in.value, {padded_, d_.value_width});
      query_ = std::move(query), key_ = std::move(key), in.value = std::move(value);
    }
    {
      Tensor beta = r_.pad(in.beta, {padded_, Size(1)}), decay = r_.pad(in.decay, {padded_, Size(1)});
      in.beta = std::move(beta), decay_ = std::move(decay);
    }
    in.decay.drop();
    v_beta_ = r_.mul(in.value, in.beta, "values times beta");
    k_beta_ = r_.mul(key_, in.beta, "keys times beta");
    value_ = in.value, beta_ = in.beta;
    query_ = r_.reshaped(query_, query_.shape());
    key_ = r_.reshaped(key_, key_.shape());
    k_beta_ = in_chunks(k_beta_);
    v_beta_ = in_chunks(v_beta_);
  }

  // The solver's gradients lie column by column: the view of several chunks copies them.
  Tensor in_chunks(const Tensor& x) {
    return chunks_ > 1 ? viewed(r_, x, x.shape(), "gradient, chunk after chunk") : x;
  }

  // What is fp32 already is not converted, and lies token by token until it is padded: a product over all heads takes a copy of it.
  Tensor by_head(const Tensor& x, bool several) {
    return lies_by_token_ && several ? r_.contiguous_copy(x, x.shape(), "operand, head by head") : x;
  }

  Tensor of_pairs(const Tensor& left, const Tensor& right) {
    const bool several = !f_.one_row() || chunks_ > 1;
    const Tensor from_right = r_.autocast_input(right),
                 from_left = r_.autocast_input(left);  // arguments of the product
    Tensor first = by_head(from_left, several), second = by_head(from_right, several);
    return r_.batched_matmul(std::move(first), std::move(second), {padded_, Size(kScanChunk)},
                             "products of a chunk's tokens");
  }

  // What happens inside of each chunk, for all chunks at once.
  void within_chunks() {
    const Shape square{Size(kScanChunk), Size(kScanChunk)};
    Tensor mask = r_.empty(square, DType::boolean, "chunk mask, all");
    mask = r_.empty(square, DType::boolean, "chunk mask");
    cum_decay_ = r_.cumulative_sum(decay_);
    Tensor pairwise = difference();
    pairwise = r_.masked_fill(pairwise, mask, "decay between tokens, masked");
    pairwise = r_.exp(pairwise);
    ut_system_ = r_.mul(of_pairs(k_beta_, key_), pairwise, "system of a chunk");
    intra_ = r_.mul(of_pairs(query_, key_), pairwise, "attention within a chunk");
    decayed_k_beta_ = r_.mul(k_beta_, r_.exp(cum_decay_), "decayed keys times beta");
    new_values_ = r_.solve_triangular(ut_system_, v_beta_, batches_);
    k_cumdecay_ = r_.solve_triangular(ut_system_, decayed_k_beta_, batches_);
    pairwise_ = std::move(pairwise);
    mask_ = std::move(mask);
  }

  // cum_decay.unsqueeze(4) - cum_decay.unsqueeze(3)
  Tensor difference() {
    Tensor out = r_.empty({padded_, Size(kScanChunk)}, DType::fp32, "decay between tokens");
    if (!r_.needs_node({&cum_decay_})) return out;
    const Edge edge = r_.edge(cum_decay_);
    r_.record({&out}, {edge, edge}, [column = cum_decay_.shape()](Recorder& r, Gradients& g) {
      Gradients result(2);
      const Tensor negated = r.empty(g[0].shape(), DType::fp32, "negated gradient");
      result[0] = r.empty(column, DType::fp32, "summed gradient");
      result[1] = r.empty(column, DType::fp32, "summed gradient");
      return result;
    });
    return out;
  }

  // cum_decay[..., -1:] - cum_decay, of each chunk.
  Tensor rest_of_decay() {
    const Tensor last = part_of(f_, cum_decay_, {batches_, Size(1)}, "gradient of the last decay, zero-filled");
    Tensor out = r_.empty(cum_decay_.shape(), DType::fp32, "decay to the end of the chunk");
    if (!r_.needs_node({&last, &cum_decay_})) return out;
    r_.record({&out}, {r_.edge(last), r_.edge(cum_decay_)},
              [whole = cum_decay_.shape(), ends = last.shape()](Recorder& r, Gradients&) {
                Gradients result(2);
                result[1] = r.empty(whole, DType::fp32, "negated gradient");
                result[0] = r.empty(ends, DType::fp32, "summed gradient");
                return result;
              });
    return out;
  }

  // The i-th chunk of x; its gradient is as large as x.
  Tensor chunk_of(const Tensor& x, const Size& rows) {
    return part_of(f_, x, {heads_ * rows, x.width()}, "gradient of a chunk, zero-filled");
  }

  // The chunks one after the other, each with the state that the one before it left.
  Tensor scan(Tensor* last_state) {
    const Shape state_shape{heads_ * d_.key_width, d_.value_width};
    Tensor state = r_.empty(state_shape, DType::fp32, "recurrent state, zeros");
    Tensor output = r_.empty({padded_, d_.value_width}, DType::fp32, "output of the chunks");
    query_ = r_.mul(query_, r_.exp(cum_decay_), "decayed queries");
    key_ = r_.mul(key_, r_.exp(rest_of_decay()), "decayed keys");
    const Tensor chunk_decay =
        r_.exp(part_of(f_, cum_decay_, {batches_, Size(1)}, "gradient of the last decay, zero-filled"));
    const bool copies_chunks =
        !f_.one_row() && !r_.autocast();  // autocast's copy of a part lies as the product wants it
    for (std::int64_t i = 0; i < chunks_; ++i) {
      v_new_ = new_values_of_chunk(state);
      inter_ = product(by_head(chunk_of(query_, Size(kScanChunk)), copies_chunks), state,
                       {heads_ * Size(kScanChunk), d_.value_width});
      {
        const Tensor within = product(chunk_of(intra_, Size(kScanChunk)), v_new_, v_new_.shape());
        output = r_.copy_into(std::move(output), r_.add(inter_, within, "output of a chunk"));
      }
      const Tensor kept = r_.mul(state, chunk_of(chunk_decay, Size(1)), "decayed state");
      const Tensor update = product(by_head(chunk_of(key_, Size(kScanChunk)), copies_chunks), v_new_, state_shape);
      state = r_.add(kept, update, "recurrent state");
    }
    if (last_state != nullptr) *last_state = std::move(state);
    return output;
  }

  Tensor new_values_of_chunk(const Tensor& state) {
    const Tensor values = chunk_of(new_values_, Size(kScanChunk));
    const Tensor predicted = product(chunk_of(k_cumdecay_, Size(kScanChunk)), state, values.shape());
    return r_.sub(values, predicted, "new values");
  }

  Tensor product(const Tensor& left, const Tensor& right, const Shape& shape) {
    return r_.batched_matmul(left, right, shape, "product of a chunk");
  }

  Forward& f_;
  Recorder& r_;
  const LinearDims& d_;
  const LinearAttentionShape& shape_;
  std::int64_t chunks_ = 0;
  bool lies_by_token_ = false;            // queries, keys and values: (b, s, heads, d) seen as (b, heads, s, d)
  Size heads_, rows_, batches_, padded_;  // heads of all rows; their tokens; their chunks; tokens with the padding
  Tensor query_, key_, value_, beta_, decay_, v_beta_, k_beta_, cum_decay_, pairwise_, mask_, ut_system_, intra_,
      decayed_k_beta_, new_values_, k_cumdecay_, v_new_, inter_;
};

}  // namespace

Tensor chunked_delta_rule(Forward& f, const LayerContext& layer, DeltaRuleInputs inputs, Tensor* last_state) {
  return DeltaRule(f, layer).run(std::move(inputs), last_state);
}

}  // namespace membill
