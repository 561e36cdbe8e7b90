#include "blocks/bloom.h"

#include "blocks/layer_norm_parts.h"
#include "blocks/layers.h"
#include "blocks/llama.h"

namespace membill {
namespace {

Tensor tanh_of_cubic(Recorder& r, const Tensor& x) {
  Tensor scaled = r.mul_scalar(x, "scaled input");
  Tensor square = r.mul(r.mul_scalar(x, "scaled input"), x, "scaled square");
  square = r.add_scalar(std::move(square));
  return r.tanh(r.mul(std::move(scaled), std::move(square), "argument of tanh"));
}

Tensor gelu_forward(Recorder& r, const Tensor& x) {
  const Tensor half = r.mul_scalar(x, "half of the input");
  return r.mul(half, r.add_scalar(tanh_of_cubic(r, x)), "gelu");
}

Tensor gelu_backward(Recorder& r, const Tensor& g, const Tensor& x) {
  const Tensor tanh = tanh_of_cubic(r, x);
  Tensor first = r.mul_scalar(x, "half of the input");
  Tensor slope = r.add_scalar(r.mul(tanh, tanh, "square of tanh"), "one less the square");
  Tensor inner = r.mul(r.mul_scalar(x, "scaled input"), x, "scaled square");
  inner = r.add_scalar(std::move(inner));
  slope = r.mul(std::move(slope), std::move(inner), "slope");
  first = r.mul(std::move(first), std::move(slope), "first term");
  Tensor second = r.mul_scalar(r.add_scalar(tanh), "second term");
  const Tensor derivative = r.add(std::move(first), std::move(second), "derivative of gelu");
  return r.mul(derivative, g, "gradient of gelu");
}

// GeLUFunction, a torch.autograd.Function that keeps its input.
Tensor bloom_gelu(Forward& f, const Tensor& x) {
  Recorder& r = f.r;
  const bool node = r.needs_node({&x}), grad = r.grad_enabled();
  const Tensor kept = node ? r.saved(x) : Tensor();
  r.set_grad_enabled(false);
  Tensor out = gelu_forward(r, x);
  r.set_grad_enabled(grad);
  if (node)
    r.record({&out}, {r.edge(x)},
             [kept](Recorder& rec, Gradients& g) { return Gradients{gelu_backward(rec, g[0], kept)}; });
  return out;
}

// baddbmm of alibi, queries and keys, scaled: the gradients of both are products that are then scaled.
Tensor scores_on_alibi(Forward& f, const Tensor& alibi, const Tensor& queries, const Tensor& keys, const Shape& shape) {
  Recorder& r = f.r;
  const Tensor k = r.autocast_input(keys), q = r.autocast_input(queries), bias = r.autocast_input(alibi);
  const bool node = r.needs_node({&q, &k});
  const bool gq = node && q.requires_grad(), gk = node && k.requires_grad();
  const Tensor kept_q = gk ? r.saved(q) : Tensor(), kept_k = gq ? r.saved(k) : Tensor();
  Tensor out = r.empty(shape, q.dtype(), "attention scores");
  r.use_matmul_workspace();
  if (!node) return out;
  r.record({&out}, {r.edge(q), r.edge(k)},
           [gq, gk, kept_q, kept_k, qs = q.shape(), ks = k.shape(), type = q.dtype()](Recorder& rec, Gradients&) {
             const auto scaled_product = [&](const Shape& of) {
               Tensor product = rec.empty(of, type, "matrix product gradient");
               rec.use_matmul_workspace();
               return rec.mul_scalar(std::move(product), "scaled gradient");
             };
             Gradients result(2);
             if (gq) result[0] = scaled_product(qs);
             if (gk) result[1] = scaled_product(ks);
             return result;
           });
  return out;
}

Tensor bloom_heads_first(Forward& f, const Tensor& x) {
  return f.one_row() ? x : f.r.contiguous_copy(x, x.shape(), "contiguous heads");
}

Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const Tensor& residual,
                 const LayerInputs& inputs, Tensor& probabilities) {
  Recorder& r = f.r;
  const KindDims& dims = layer.dims;
  const Size rows = f.dims.N * dims.a;
  const Tensor fused =
      r.view(apply_linear(f, layer.modules.at("self_attention.query_key_value"), hidden), {rows, Size(3) * dims.d});
  Tensor q = r.slice(fused, dims.d), k = r.slice(fused, dims.d), v = r.slice(fused, dims.d);
  q = bloom_heads_first(f, q);
  k = bloom_heads_first(f, k);
  v = bloom_heads_first(f, v);
  const Tensor scores = scores_on_alibi(f, inputs.extra, q, k, {rows, f.dims.s});
  const Tensor masked = r.add(scores, inputs.mask, "masked scores");
  probabilities = r.cast(r.softmax(masked, DType::fp32), q.dtype());
  probabilities = r.dropout(probabilities, f.attention_dropout);
  Tensor context = heads_first_gradient(f, r.batched_matmul(probabilities, v, {rows, dims.d}, "attention output"));
  context = r.contiguous_copy(context, {f.dims.N, dims.a * dims.d}, "attention output, heads last");
  Tensor output = apply_linear(f, layer.modules.at("self_attention.dense"), context);
  output = r.dropout(output, f.hidden_dropout);
  return r.add(residual, output, "residual stream");
}

Tensor bloom_mlp(Forward& f, const LayerContext& layer, const Tensor& normed, const Tensor& residual) {
  Tensor hidden = bloom_gelu(f, apply_linear(f, layer.modules.at("mlp.dense_h_to_4h"), normed));
  Tensor output = apply_linear(f, layer.modules.at("mlp.dense_4h_to_h"), hidden);
  const ItemScope scope(f.r, f.items.boundary);
  const Tensor dropped = f.r.dropout(output, f.hidden_dropout);
  return f.r.add(residual, dropped, "layer output");
}

}  // namespace

Tensor BloomArchitecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  const Tensor tokens = embed_tokens(f, outer, ids);
  f.locals = {tokens};
  return layer_norm(f, outer.at("transformer.word_embeddings_layernorm"), tokens);
}

// Alibi is made without a padding mask: slopes times positions, repeated over the batch.
LayerInputs BloomArchitecture::prepare(Forward& f, const Modules&, const Tensor& hidden) const {
  Recorder& r = f.r;
  const KindDims& dims = f.dims.kinds.at(1).at(0);
  const bool grad = r.grad_enabled();
  r.set_grad_enabled(false);
  LayerInputs inputs;
  f.locals.push_back(r.empty({dims.a, Size(1)}, DType::fp32, "slopes of alibi"));
  inputs.extra = r.empty({dims.a * f.dims.s, Size(1)}, DType::fp32, "alibi of one row");
  inputs.extra = r.empty({f.dims.N * dims.a, Size(1)}, DType::fp32, "alibi");
  inputs.extra = r.cast(inputs.extra, hidden.dtype());
  // Bloom's layers know no other attention than eager, whatever the job asks for.
  const Tensor allowed = r.empty({f.dims.N, f.dims.s}, DType::boolean, "causal mask, boolean");
  inputs.mask = r.empty({f.dims.N, f.dims.s}, f.stream, "causal mask");
  r.set_grad_enabled(grad);
  return inputs;
}

Tensor BloomArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden, const LayerInputs& inputs) const {
  Tensor normed = layer_norm(f, layer.modules.at("input_layernorm"), hidden), probabilities;
  const Tensor attended = attention(f, layer, normed, hidden, inputs, probabilities);
  normed = layer_norm(f, layer.modules.at("post_attention_layernorm"), attended);
  Tensor output = bloom_mlp(f, layer, normed, attended);
  f.second_output = std::move(probabilities);
  return output;
}

Tensor BloomArchitecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  return layer_norm(f, outer.at("transformer.ln_f"), std::move(hidden));
}

}  // namespace membill
