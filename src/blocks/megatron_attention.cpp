#include "blocks/megatron_attention.h"

#include "blocks/attention.h"
#include "blocks/layers.h"
#include "blocks/megatron_latent.h"

namespace membill {
namespace {

Tensor angles(Forward& f, const Size& rotary, DType type) {
  Recorder& r = f.r;
  const Shape shape{f.dims.s, rotary};
  Tensor table = r.empty(shape, DType::fp32, "cosines or sines");
  table = r.empty(shape, DType::fp32, "scaled cosines or sines");
  return r.empty(shape, type, "cosines or sines of the stream's type");
}

// The fused scale-mask-softmax kernel: in 16 bits, only its result is kept.
Tensor fused_softmax(Recorder& r, const Tensor& scores) {
  Tensor out = r.empty(scores.shape(), scores.dtype(), "fused softmax");
  if (!r.needs_node({&scores})) return out;
  const Tensor kept = r.detach(r.saved(out));
  r.record({&out}, {r.edge(scores)}, [kept, shape = scores.shape(), type = scores.dtype()](Recorder& rec, Gradients&) {
    return Gradients{rec.empty(shape, type, "softmax gradient")};
  });
  return out;
}

// scores.masked_fill_(mask, -10000).
Tensor filled_in_place(Recorder& r, const Tensor& scores, const Tensor& mask) {
  Tensor out = r.view(scores, scores.shape());
  if (!r.needs_node({&scores})) return out;
  const Tensor kept = r.saved(mask);
  r.record({&out}, {r.edge(scores)}, [kept, shape = scores.shape(), type = scores.dtype()](Recorder& rec, Gradients&) {
    return Gradients{rec.empty(shape, type, "gradient of the masked scores")};
  });
  return out;
}

// FusedScaleMaskSoftmax.forward_torch_softmax with attention_softmax_in_fp32.
Tensor softmax_in_fp32(Recorder& r, const Tensor& scores, const Tensor& mask) {
  const Tensor wide = filled_in_place(r, r.cast(scores, DType::fp32), mask);
  const Tensor probabilities = r.softmax(wide, std::nullopt);
  return r.cast(probabilities, scores.dtype());
}

Tensor unfused(Forward& f, const CoreAttention& core, const Tensor& q, Tensor k, Tensor v) {
  const KindDims& dims = core.dims;
  const LayerKind& kind = core.kind;
  Recorder& r = f.r;
  const Size rows = f.dims.N * dims.a;
  if (kind.attention.heads != kind.attention.kv_heads) {
    k = r.contiguous_copy(k, {rows, dims.d}, "keys of all heads");
    v = r.contiguous_copy(v, {rows, dims.v}, "values of all heads");
  }
  const Tensor scores = r.batched_matmul(q, k, {rows, f.dims.s}, "attention scores");
  Tensor probabilities = f.plan.attention == AttentionKernel::fused_softmax ? fused_softmax(r, scores)
                                                                            : softmax_in_fp32(r, scores, core.mask);
  probabilities = r.dropout(std::move(probabilities), f.attention_dropout);
  const Tensor context = r.batched_matmul(probabilities, v, {rows, dims.v}, "attention output");
  return r.contiguous_copy(context, {f.dims.N, dims.a * dims.v}, "attention output, tokens first");
}

}  // namespace

Tensor megatron_rotary(Forward& f, const Tensor& x, const Size& rotary, bool interleaved) {
  Recorder& r = f.r;
  const Shape turned{x.rows(), rotary};
  Tensor part = part_of(f, x, turned, "gradient of the rotated part, zero-filled");
  if (interleaved) {
    const Shape half{x.rows(), r.symbols().ceil_div(rotary, Size(2))};
    const Tensor even = part_of(f, part, half, "gradient of the even columns, zero-filled"),
                 odd = part_of(f, part, half, "gradient of the odd columns, zero-filled");
    part = r.concatenate(even, odd, turned);
  }
  const Tensor cos = angles(f, rotary, x.dtype()), sin = angles(f, rotary, x.dtype());
  Tensor sum;
  {
    const Tensor straight = r.mul(part, cos, "rotated by cos");
    Tensor swapped;
    {
      const auto [first, second] = r.split_in_two(part, {x.rows(), r.symbols().ceil_div(rotary, Size(2))});
      swapped = r.concatenate(r.neg(second), first, turned);
    }
    const Tensor crossed = r.mul(std::move(swapped), sin, "rotated by sin");
    sum = r.add(straight, crossed, "rotated");
  }
  return r.contiguous_copy(std::move(sum), x.shape(), "rotated, with the rest");
}

bool has_scores(const TrainingPlan& plan) {
  return plan.attention == AttentionKernel::eager || plan.attention == AttentionKernel::fused_softmax;
}

Tensor megatron_core_attention(Forward& f, const CoreAttention& core, const std::vector<Tensor>& parts) {
  if (has_scores(f.plan)) return unfused(f, core, parts[0], parts[1], parts[2]);
  if (core.kind.attention.latent) return latent_flash(f, core.dims, parts);
  AttentionCall call{core.dims, core.kind.attention, {AttentionKernel::flash, false}, {}};
  call.tokens_first = true;
  return run_attention(f, call, parts[0], parts[1], parts[2]);
}

}  // namespace membill
