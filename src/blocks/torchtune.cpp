#include "blocks/torchtune.h"

#include "blocks/attention.h"
#include "blocks/fp32_norm.h"
#include "blocks/layers.h"
#include "blocks/loss.h"

namespace membill {
namespace {

// x[..., i] of pairs, in fp32.
Tensor half_of(Forward& f, const Tensor& pairs, const Shape& half) {
  return part_of(f, pairs, half, "gradient of the pairs, zero-filled");
}

Tensor rotate_pairs(Forward& f, const Tensor& x) {
  Recorder& r = f.r;
  const Tensor pairs = r.cast(x, DType::fp32);
  const Shape half{x.rows(), r.symbols().ceil_div(x.width(), Size(2))};
  const auto turned = [&] {
    return r.add(r.mul_scalar(half_of(f, pairs, half), "turned half"),
                 r.mul_scalar(half_of(f, pairs, half), "turned half"));
  };
  const Tensor first = turned();
  const Tensor second = turned();
  const Tensor both = r.concatenate(first, second, x.shape());
  return r.cast(both, x.dtype());
}

// Output chunks: as the plan says, the recipes' 8 where it says nothing, 0 for cross entropy over the whole.
std::int64_t chunk_count(const Forward& f) {
  if (f.plan.loss_chunk > 0) return loss_chunks(f);
  return f.plan.loss ? 0 : 8;
}

Tensor output(Forward& f, const Architecture& architecture, const Modules& outer, Tensor rows, bool first, bool last) {
  if (f.hooks == nullptr) return architecture.head(f, outer, std::move(rows));
  return f.hooks->after_output(architecture.head(f, outer, f.hooks->before_output(std::move(rows))), first, last);
}

}  // namespace

Tensor torchtune_wide_logits(Forward& f, const Architecture& architecture, const Modules& outer, Tensor hidden) {
  f.r.set_items(f.items.loss_logits);
  Tensor wide;
  {
    const Tensor logits = output(f, architecture, outer, hidden, true, true);
    f.r.set_items(f.items.loss_upcast);
    wide = f.r.cast(logits, DType::fp32);
  }
  hidden.drop();
  f.caller_locals.clear();
  if (f.hooks != nullptr) f.hooks->after_logits();
  return wide;
}

Tensor TorchtuneArchitecture::rotate(Forward& f, const Tensor& x, const Size& heads, const Size& width) const {
  const Tensor by_head = f.r.view(x, {f.dims.N * heads, width});
  return rotary_ == TuneRotary::pairs ? rotate_pairs(f, by_head) : rotate_halves(f, by_head);
}

Tensor TorchtuneArchitecture::attention(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  const KindDims& dims = layer.dims;
  const Modules& modules = layer.modules;
  Tensor q = rotate(f, apply_linear(f, modules.at("self_attn.q_proj"), hidden), dims.a, dims.d);
  Tensor k = apply_linear(f, modules.at("self_attn.k_proj"), hidden);
  Tensor v = f.r.view(apply_linear(f, modules.at("self_attn.v_proj"), hidden), {f.dims.N * dims.k, dims.v});
  k = rotate(f, k, dims.k, dims.d);
  if (layer.kind.attention.qk_norm) {  // modules/attention.py: after the rotation
    q = fp32_rms_norm(f, modules.at("self_attn.q_norm"), q);
    k = fp32_rms_norm(f, modules.at("self_attn.k_norm"), k);
  }
  if (layer.kind.attention.heads != layer.kind.attention.kv_heads) {
    k = f.r.contiguous_copy(std::move(k), {f.dims.N * dims.a, dims.d}, "keys of all heads");
    v = f.r.contiguous_copy(std::move(v), {f.dims.N * dims.a, dims.v}, "values of all heads");
  }
  AttentionShape shape = layer.kind.attention;
  shape.kv_heads = shape.heads;
  const AttentionCall call{dims, shape, choose_attention(f, layer.kind, false), {}};
  const Tensor output = run_attention(f, call, std::move(q), std::move(k), std::move(v));
  return apply_linear(f, modules.at("self_attn.o_proj"), output);
}

Tensor TorchtuneArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden, const LayerInputs&) const {
  const Modules& modules = layer.modules;
  Tensor h = fp32_rms_norm(f, modules.at("input_layernorm"), hidden);
  const Tensor attended = attention(f, layer, h);
  h = f.r.add(attended, hidden, "residual");
  const Tensor fed = tune_mlp(f, modules, fp32_rms_norm(f, modules.at("post_attention_layernorm"), h));
  const ItemScope scope(f.r, f.items.boundary);
  return f.r.add(h, fed, "residual");
}

Tensor TorchtuneArchitecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  f.caller_locals.push_back(hidden);  // forward() holds it until unembed() has returned
  return fp32_rms_norm(f, outer.at("model.norm"), hidden);
}

std::vector<Tensor> torchtune_logits(Forward& f, const Architecture& architecture, const Modules& outer,
                                     Tensor hidden) {
  Recorder& r = f.r;
  std::vector<Tensor> logits;
  const std::int64_t count = chunk_count(f);
  if (count == 0) {
    logits.push_back(torchtune_wide_logits(f, architecture, outer, std::move(hidden)));
    return logits;
  }
  {
    std::vector<Tensor> chunks = chunks_of(f, hidden, count, "gradient of the final states");
    hidden.drop();
    r.set_items(f.items.loss_logits);
    for (const Tensor& chunk : chunks) {
      Tensor rows = f.one_row() ? chunk : r.contiguous_copy(chunk, chunk.shape(), "contiguous final states of a chunk");
      logits.push_back(
          output(f, architecture, outer, std::move(rows), logits.empty(), logits.size() + 1 == chunks.size()));
    }
  }
  f.caller_locals.clear();
  if (f.hooks != nullptr) f.hooks->after_logits();
  return logits;
}

Tensor torchtune_cross_entropy(Forward& f, const std::vector<Tensor>& logits, const Tensor& labels) {
  Recorder& r = f.r;
  Tensor total;
  for (const Tensor& part : logits) {
    r.set_items(f.items.loss_upcast);
    const Tensor wide = r.cast(part, DType::fp32);
    r.set_items(f.items.loss_probabilities);
    Tensor loss = negative_log_likelihood(f, r.log_softmax(wide), labels);
    total = total.defined() ? r.add(std::move(total), std::move(loss)) : std::move(loss);
  }
  return total;
}

Tensor TorchtuneArchitecture::loss(Forward& f, const Modules& outer, Tensor hidden, const Tensor& labels,
                                   Tensor*) const {
  return torchtune_cross_entropy(f, torchtune_logits(f, *this, outer, std::move(hidden)), labels);
}

}  // namespace membill
