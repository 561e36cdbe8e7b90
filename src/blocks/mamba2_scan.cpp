#include "blocks/mamba2_scan.h"

#include "blocks/layers.h"

namespace membill {
namespace {

// One call of the scan, with the letters of its code.
class Mamba2Scan {
 public:
  Mamba2Scan(Forward& f, const LayerContext& layer)
      : f_(f), r_(f.r), d_(layer.dims.space), chunk_(layer.kind.state_space->chunk) {
    chunks_ = r_.symbols().ceil_div(f.dims.s, chunk_);
    several_ = r_.symbols().evaluate(chunks_) > 1;
    batches_ = f.dims.b * chunks_ * d_.heads;
    rows_ = f.dims.N * d_.heads;
    padded_ = batches_ * chunk_;
  }

  Tensor run(Mamba2Inputs in, Module& skip, Module& time_bias) {
    const Tensor residual = prepare(in, skip, time_bias);
    in = {};
    const Tensor within = within_chunks(), between = between_chunks();
    Tensor output = r_.add(within, between, "output of the chunks");
    output = r_.contiguous_copy(std::move(output), {padded_, d_.width}, "output of the chunks, in order");
    output = r_.add(std::move(output), residual, "output with the skip");
    if (!r_.symbols().equal(padded_, rows_))
      output = part_of(f_, output, {rows_, d_.width}, "gradient of the output, padded");
    return output;
  }

 private:
  // Time steps, everything in fp32, groups spread over their heads, whole chunks. Returns what passes the scan by.
  Tensor prepare(Mamba2Inputs& in, Module& skip, Module& time_bias) {
    Tensor dt = r_.add(in.time_step, r_.cast(time_bias.weight.value, in.time_step.dtype()), "time step with its bias");
    dt = r_.softplus(std::move(dt));
    dt = r_.clamp(std::move(dt), Recorder::Bounds::both);
    Tensor x = r_.cast(in.x, DType::fp32), b = spread(in.input), c = spread(in.output);
    Tensor residual = r_.mul(skip.weight.value, r_.pad(x, {padded_, d_.width}), "skip");
    x = r_.mul(std::move(x), r_.cast(dt, DType::fp32), "input times the time step");
    Tensor a = r_.mul(in.decay, r_.cast(dt, DType::fp32), "decay of each token");
    x_ = in_chunks(x, d_.width), a_ = r_.pad(a, {padded_, Size(1)});
    b_ = in_chunks(b, d_.state), c_ = in_chunks(c, d_.state);
    dt_ = std::move(dt);
    return residual;
  }

  // repeat_interleave over the heads of a group.
  Tensor spread(const Tensor& x) {
    const Tensor wide = r_.cast(x, DType::fp32);
    return r_.contiguous_copy(wide, {rows_, d_.state}, "spread over the heads");
  }

  // The gradient comes head by head and is copied where there are several chunks.
  Tensor in_chunks(const Tensor& x, const Size& width) {
    return gradient_copied(r_.pad(x, {padded_, width}), several_, "gradient, token by token");
  }

  Tensor gradient_copied(const Tensor& x, bool copies, const char* label) {
    if (!copies || !r_.needs_node({&x})) return x;
    Tensor out = r_.view(x, x.shape());
    r_.record({&out}, {r_.edge(x)}, [shape = x.shape(), type = x.dtype(), label](Recorder& r, Gradients&) {
      return Gradients{r.empty(shape, type, label)};
    });
    return out;
  }

  // An operand of einsum: its axes in the product's order. Its gradient is seen in the former order.
  Tensor ordered(const Tensor& x, bool copies) {
    const Tensor out = copies ? r_.contiguous_copy(x, x.shape(), "operand, head by head") : x;
    return r_.reshaped(out, out.shape());
  }

  // einsum of two operands; what it casts for autocast lives until it is done. `turned`: the right one's axis comes first in the result,
  // and so in the product.
  Tensor product(const Tensor& left, bool left_copies, const Tensor& right, bool right_copies, const Shape& shape,
                 bool turned = false) {
    const Tensor from_left = r_.autocast_input(left), from_right = r_.autocast_input(right);
    Tensor first = ordered(from_left, left_copies), second = ordered(from_right, right_copies);
    if (turned) std::swap(first, second);
    return r_.batched_matmul(std::move(first), std::move(second), shape, "product of a chunk");
  }

  // Whether heads of several rows or chunks lie apart for a product.
  [[nodiscard]] bool apart() const { return several_ || !f_.one_row(); }
  // The same of x, which the convolution leaves head by head until it is padded.
  [[nodiscard]] bool x_apart() const { return several_ || (!f_.one_row() && !r_.symbols().equal(padded_, rows_)); }

  // torch.cumsum over an axis that does not lie together: a copy while it runs.
  Tensor running_sum(const Tensor& x) {
    Tensor out = r_.empty(x.shape(), DType::fp32, "running sum");
    { const Tensor copy = r_.empty(x.shape(), DType::fp32, "operand of the sum, in order"); }
    if (!r_.needs_node({&x})) return out;
    r_.record({&out}, {r_.edge(x)}, [shape = x.shape()](Recorder& r, Gradients&) {
      const Tensor flipped = r.empty(shape, DType::fp32, "gradient, flipped");
      const Tensor summed = r.empty(shape, DType::fp32, "running sum of the gradient");
      { const Tensor copy = r.empty(shape, DType::fp32, "operand of the sum, in order"); }
      return Gradients{r.empty(shape, DType::fp32, "gradient of a running sum")};
    });
    return out;
  }

  // segment_sum, and its exponential: decay between each pair of `length` places.
  Tensor pairwise(const Tensor& x, const Size& length) {
    const Shape square{length, length}, pairs{x.rows(), length};
    const auto triangle = [&] {
      const Tensor ones = r_.empty(square, DType::boolean, "ones");
      return r_.empty(square, DType::boolean, "mask of pairs");
    };
    const auto others = [&] { return r_.empty(square, DType::boolean, "mask of pairs, turned"); };
    Tensor sums;
    {
      Tensor mask = triangle();
      const Tensor masked = r_.masked_fill(r_.broadcast_view(r_.reshaped(x, x.shape()), pairs), others(),
                                           "decay of each token, for each of a chunk");
      sums = r_.cumulative_sum(masked);
      mask = triangle();
      sums = r_.masked_fill(sums, others(), "decay between tokens, masked");
    }
    return r_.exp(std::move(sums));
  }

  Tensor within_chunks() {
    cumulative_ = running_sum(a_);
    decay_ = pairwise(a_, chunk_);
    scores_ = product(c_, apart(), b_, apart(), {padded_, chunk_});
    mask_ = r_.mul(scores_, decay_, "scores with their decay");
    const Tensor out = product(mask_, false, x_, x_apart(), {padded_, d_.width});
    return gradient_copied(out, apart(), "gradient of a chunk's output, head by head");
  }

  // A_cumsum[..., -1:] - A_cumsum
  Tensor rest_of_decay() {
    const Tensor last = part_of(f_, cumulative_, {batches_, Size(1)}, kOfLast);
    Tensor out = r_.empty(cumulative_.shape(), DType::fp32, "decay to the end of the chunk");
    if (!r_.needs_node({&last, &cumulative_})) return out;
    r_.record({&out}, {r_.edge(last), r_.edge(cumulative_)},
              [whole = cumulative_.shape(), ends = last.shape()](Recorder& r, Gradients&) {
                Gradients result(2);
                result[1] = r.empty(whole, DType::fp32, "negated gradient");
                result[0] = r.empty(ends, DType::fp32, "summed gradient");
                return result;
              });
    return out;
  }

  // What each chunk leaves for those behind it.
  Tensor carried_states() {
    const Size places = chunks_ + Size(1), heads = f_.dims.b * d_.heads;
    const Shape all{heads * places * d_.width, d_.state}, each{batches_ * d_.width, d_.state};
    left_ = r_.exp(rest_of_decay());
    kept_ = r_.mul(b_, left_, "input that the state keeps");
    Tensor states = product(kept_, apart(), x_, x_apart(), each, true);
    states = gradient_copied(states, several_, "gradient of the chunks' states, head by head");
    first_ = r_.empty({heads * d_.width, d_.state}, states.dtype(), "first state, zeros");
    states = r_.join({first_, states}, all);
    const Tensor last = part_of(f_, cumulative_, {batches_, Size(1)}, kOfLast);
    carried_ = pairwise(r_.pad(last, {heads * places, Size(1)}), places);
    states = product(carried_, false, states, !f_.one_row(), all);
    states = gradient_copied(states, !f_.one_row(), "gradient of the carried states, head by head");
    return part_of(f_, states, each, "gradient of the carried states, zero-filled");
  }

  // What the tokens read of earlier chunks.
  Tensor between_chunks() {
    states_ = carried_states();
    read_ = r_.exp(cumulative_);
    from_states_ = product(c_, apart(), states_, several_, {padded_, d_.width});
    from_states_ = gradient_copied(from_states_, apart(), "gradient of a chunk's output, head by head");
    return r_.mul(from_states_, read_, "output of earlier chunks");
  }

  static constexpr const char* kOfLast = "gradient of a chunk's whole decay, zero-filled";

  Forward& f_;
  Recorder& r_;
  const StateSpaceDims& d_;
  Size chunk_, chunks_;           // tokens of a chunk, chunks of a row
  Size batches_, rows_, padded_;  // chunks of all heads; tokens of all heads, and with their padding
  bool several_ = false;          // chunks of a row
  // Variables of the function, which live until it returns.
  Tensor x_, a_, b_, c_, dt_, cumulative_, scores_, mask_, decay_, left_, kept_, first_, carried_, states_, read_,
      from_states_;
};

}  // namespace

Tensor mamba2_scan(Forward& f, const LayerContext& layer, Mamba2Inputs inputs, Module& skip, Module& time_bias) {
  return Mamba2Scan(f, layer).run(std::move(inputs), skip, time_bias);
}

}  // namespace membill
