#include "blocks/litgpt.h"

#include <algorithm>
#include <array>

#include "blocks/adapters.h"
#include "blocks/attention.h"
#include "blocks/fp32_norm.h"
#include "blocks/kept.h"
#include "blocks/layers.h"
#include "blocks/loss.h"

namespace membill {
namespace {

constexpr std::int64_t kHeadChunk = 128;  // finetune/lora.py lm_head_chunk_size, utils.py chunked_cross_entropy

constexpr std::array kProjections = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};

LitgptInput shared_input(const Modules& modules) {
  LitgptInput shared;
  shared.padded = std::any_of(kProjections.begin(), kProjections.end(),
                              [&](const char* name) { return modules.at(name).adapter == nullptr; });
  return shared;
}

// apply_rope, and the cat with the part that is not turned.
Tensor rotate(Forward& f, const Tensor& x, const Size& heads, const Size& width) {
  const Tensor by_head = f.r.view(x, {f.dims.N * heads, width});
  return f.r.contiguous_copy(rotate_halves(f, by_head), by_head.shape(), "turned heads");
}

// Queries, keys and values are parts of one product: where the values are kept as they are, all of it stays.
Tensor with_its_product(Forward& f, const Tensor& v, const Tensor& q, const Tensor& k) {
  return also_keeping(f.r, also_keeping(f.r, v, q), k);
}

// At least one: a single token leaves nothing to shift.
std::int64_t chunk_count(const Forward& f, const Size& rows) {
  return std::max<std::int64_t>(1, ceil_div(f.r.symbols().evaluate(rows), kHeadChunk));
}

Tensor cross_entropy(Forward& f, const std::vector<Tensor>& chunks, const Tensor& labels) {
  Recorder& r = f.r;
  r.set_items(f.items.loss_probabilities);
  Tensor total;
  for (const Tensor& chunk : chunks) {
    Tensor part = negative_log_likelihood(f, r.log_softmax(chunk), labels);
    total = total.defined() ? r.add(std::move(total), std::move(part)) : std::move(part);
  }
  return total;
}

}  // namespace

Tensor LitgptArchitecture::attention(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  const KindDims& dims = layer.dims;
  const Modules& modules = layer.modules;
  const bool grouped = layer.kind.attention.heads != layer.kind.attention.kv_heads;
  AttentionShape shape = layer.kind.attention;
  shape.kv_heads = shape.heads;
  AttentionCall call{dims, shape, choose_attention(f, layer.kind, false), {}};
  call.query_contiguous = true;
  LitgptInput shared = shared_input(modules);
  Tensor q = apply_litgpt_adapter(f, modules.at(kProjections[0]), hidden, shared);
  Tensor k = apply_litgpt_adapter(f, modules.at(kProjections[1]), hidden, shared);
  Tensor v = apply_litgpt_adapter(f, modules.at(kProjections[2]), hidden, shared);
  shared.dropped.drop();
  if (!grouped) v = with_its_product(f, v, q, k);
  v = f.r.view(std::move(v), {f.dims.N * dims.k, dims.v});
  if (layer.kind.attention.qk_norm) {
    q = fp32_rms_norm(f, modules.at("self_attn.q_norm"), f.r.view(std::move(q), {f.dims.N * dims.a, dims.d}));
    k = fp32_rms_norm(f, modules.at("self_attn.k_norm"), f.r.view(std::move(k), {f.dims.N * dims.k, dims.d}));
  }
  q = rotate(f, q, dims.a, dims.d);
  k = rotate(f, k, dims.k, dims.d);
  if (grouped) {
    k = f.r.contiguous_copy(std::move(k), {f.dims.N * dims.a, dims.d}, "keys of all heads");
    v = f.r.contiguous_copy(std::move(v), {f.dims.N * dims.a, dims.v}, "values of all heads");
  }
  Tensor output = run_attention(f, call, std::move(q), std::move(k), std::move(v));
  return apply_linear(f, modules.at("self_attn.o_proj"), std::move(output));
}

Tensor LitgptArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden, const LayerInputs&) const {
  const Modules& modules = layer.modules;
  const Tensor normed = fp32_rms_norm(f, modules.at("input_layernorm"), hidden);
  hidden = f.r.add(attention(f, layer, normed), hidden, "residual");
  const Tensor fed = tune_mlp(f, layer.modules, fp32_rms_norm(f, modules.at("post_attention_layernorm"), hidden));
  const ItemScope scope(f.r, f.items.boundary);
  return f.r.add(fed, hidden, "residual");
}

Tensor LitgptArchitecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  return fp32_rms_norm(f, outer.at("model.norm"), hidden);
}

Tensor LitgptArchitecture::loss(Forward& f, const Modules& outer, Tensor hidden, const Tensor& labels, Tensor*) const {
  Recorder& r = f.r;
  const auto widened = [&](Tensor logits) {
    r.set_items(f.items.loss_upcast);
    return r.cast(std::move(logits), DType::fp32);
  };
  if (f.plan.method != Method::lora) {
    Tensor wide = widened(head(f, outer, std::move(hidden)));
    if (f.loop_variables != nullptr) *f.loop_variables = {wide};
    const Shape rows{f.dims.N - f.dims.b, f.dims.V};
    Tensor shifted = part_of(f, wide, rows, "gradient of the logits, zero-filled");
    wide.drop();
    if (!f.one_row()) shifted = r.contiguous_copy(std::move(shifted), rows, "shifted logits");
    return cross_entropy(f, chunks_of(f, shifted, chunk_count(f, rows.rows), "gradient of the shifted logits"), labels);
  }
  std::vector<Tensor> logits, wide;
  for (const Tensor& chunk : chunks_of(f, hidden, chunk_count(f, f.dims.s), "gradient of the final states")) {
    r.set_items(f.items.loss_logits);
    logits.push_back(
        head(f, outer, f.one_row() ? chunk : r.contiguous_copy(chunk, chunk.shape(), "final states of a chunk")));
  }
  hidden.drop();
  for (const Tensor& chunk : logits) wide.push_back(widened(chunk));
  logits.clear();
  if (f.loop_variables != nullptr) *f.loop_variables = wide;
  return cross_entropy(f, wide, labels);
}

}  // namespace membill
