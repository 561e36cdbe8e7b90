#include "blocks/megatron.h"

namespace membill {
namespace {

constexpr double kDropout = 0.1;

// One kernel for scale, mask and softmax in 16 bits: only its result is kept.
Tensor fused_softmax(Recorder& r, Tensor scores) {
  const Tensor in = std::move(scores);
  Tensor out = r.empty(in.shape(), in.dtype(), "fused softmax");
  Tensor kept = r.detach(r.saved(out));
  r.record({&out}, {r.edge(in)}, [kept, shape = in.shape(), type = in.dtype()](Recorder& rec, Gradients&) {
    return Gradients{rec.empty(shape, type, "softmax gradient")};
  });
  return out;
}

Tensor attention(Recorder& r, const MegatronLayerSizes& z, MegatronLayerWeights& w, const Tensor& hidden) {
  const Size tokens = z.s * z.b;
  const Shape heads{tokens, z.h};
  const Tensor qkv = r.linear(hidden, w.qkv);
  // Split into three tensors of their own, as the paper counts Q, K and V.
  const Tensor q = r.contiguous_copy(qkv, heads, "queries"), k = r.contiguous_copy(qkv, heads, "keys"),
               v = r.contiguous_copy(qkv, heads, "values");
  const Shape scores{z.a * tokens, z.s};
  Tensor weights = r.dropout(fused_softmax(r, r.batched_matmul(q, k, scores, "attention scores")), kDropout);
  Tensor context = r.batched_matmul(std::move(weights), v, heads, "attention output");
  return r.linear(std::move(context), w.projection);
}

}  // namespace

Tensor megatron_layer(Recorder& r, const MegatronLayerSizes& z, MegatronLayerWeights& w, Tensor hidden) {
  Tensor residual = hidden;
  hidden = r.layer_norm(hidden, w.input_norm, &w.input_norm_bias);
  hidden = r.dropout(attention(r, z, w, hidden), kDropout);
  hidden = r.add(residual, hidden, "residual stream");
  residual = hidden;
  hidden = r.layer_norm(hidden, w.mlp_norm, &w.mlp_norm_bias);
  hidden = r.linear(r.gelu(r.linear(hidden, w.up)), w.down);
  hidden = r.dropout(std::move(hidden), kDropout);
  return r.add(residual, hidden, "layer output");
}

}  // namespace membill
