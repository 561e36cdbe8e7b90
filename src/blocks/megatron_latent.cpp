#include "blocks/megatron_latent.h"

#include <algorithm>
#include <string>

#include "blocks/megatron_attention.h"
#include "blocks/megatron_norm.h"
#include "blocks/megatron_parallel.h"
#include "blocks/megatron_router.h"

namespace membill {
namespace {

Module& module_of(const LayerContext& layer, const char* name) {
  return layer.modules.at(std::string("self_attention.") + name);
}

// Compressed and normed; the hidden states where queries are not compressed.
Tensor compressed_queries(Forward& f, const LayerContext& layer, const Tensor& hidden) {
  if (layer.modules.find("self_attention.linear_q_proj") != nullptr) return hidden;
  return local_linear(f, module_of(layer, "linear_q_down_proj"), hidden);
}

Tensor normed_queries(Forward& f, const LayerContext& layer, const Tensor& compressed) {
  if (layer.modules.find("self_attention.linear_q_proj") != nullptr) return compressed;
  return megatron_norm(f, module_of(layer, "q_layernorm"), compressed);
}

Tensor wide_queries(Forward& f, const LayerContext& layer, const Tensor& compressed) {
  if (Module* whole = layer.modules.find("self_attention.linear_q_proj")) return column_linear(f, *whole, compressed);
  return column_linear(f, module_of(layer, "linear_q_up_proj"), compressed);
}

// qkv_up_proj_and_rope_apply of compressed queries, compressed keys and values, and rotating keys.
std::vector<Tensor> projected_up(Forward& f, const LayerContext& layer, const std::vector<Tensor>& compressed) {
  Recorder& r = f.r;
  const ItemScope scope(r, f.items.block);
  const KindDims& dims = layer.dims;
  const Size heads = f.dims.N * dims.a, plain = dims.d - dims.rotary;
  const Tensor q = r.view(wide_queries(f, layer, compressed[0]), {heads, dims.d});
  const Tensor both =
      r.view(column_linear(f, module_of(layer, "linear_kv_up_proj"), compressed[1]), {heads, plain + dims.v});
  auto [q_plain, q_rotating] = r.split_in_two(q, {heads, plain}, {heads, dims.rotary});
  const auto [k_plain, value] = r.split_in_two(both, {heads, plain}, {heads, dims.v});
  const Tensor q_rotated = megatron_rotary(f, q_rotating, dims.rotary, true);
  const Tensor k_rotated = megatron_rotary(f, compressed[2], dims.rotary, true);
  const Shape whole{heads, dims.d};
  const Tensor query = r.concatenate(q_plain, q_rotated, whole);
  const Tensor key = r.concatenate(k_plain, r.broadcast_view(k_rotated, {heads, dims.rotary}), whole);
  return {query, key, r.contiguous_copy(value, {heads, dims.v}, "values")};
}

}  // namespace

bool has_latent_attention(const ModelSpec& model) {
  return std::any_of(model.sections.begin(), model.sections.end(), [](const Section& section) {
    return std::any_of(section.kinds.begin(), section.kinds.end(),
                       [](const LayerKind& kind) { return kind.attention.latent; });
  });
}

std::vector<Tensor> latent_parts(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                 DiscardedResults& projected) {
  Recorder& r = f.r;
  const KindDims& dims = layer.dims;
  const Size rank(layer.kind.attention.kv_lora_rank);
  const Tensor narrow = compressed_queries(f, layer, hidden);
  const Tensor combined = local_linear(f, module_of(layer, "linear_kv_down_proj"), hidden);
  auto [latent, shared] = r.split_in_two(combined, {combined.rows(), rank}, {combined.rows(), dims.rotary});
  if (!r.symbols().equal(combined.rows(), f.dims.N))
    shared = moved(r, shared, {f.dims.N, dims.rotary}, "rotating keys of all rows");
  const Tensor queries = normed_queries(f, layer, narrow);
  const Tensor normed = megatron_norm(f, module_of(layer, "kv_layernorm"), latent);
  const auto project = [&f, layer](const std::vector<Tensor>& inputs) { return projected_up(f, layer, inputs); };
  if (recomputes_module(f.plan, "mla_up_proj")) return projected.run(r, {queries, normed, shared}, project);
  return project({queries, normed, shared});
}

Tensor latent_flash(Forward& f, const KindDims& dims, const std::vector<Tensor>& parts) {
  Recorder& r = f.r;
  const bool node = r.needs_node({parts.data(), parts.data() + 1, parts.data() + 2});
  std::vector<Tensor> kept;
  kept.reserve(parts.size());
  for (const Tensor& part : parts) kept.push_back(node ? r.saved(part) : Tensor());
  Tensor out = r.empty({f.dims.N, dims.a * dims.v}, f.stream, "attention output");
  const Tensor statistics = r.empty({f.dims.N * dims.a, Size(1)}, DType::fp32, "attention statistics");
  if (!node) return out;
  kept.push_back(r.detach(r.saved(out)));
  kept.push_back(r.saved(statistics));
  r.record({&out}, {r.edge(parts[0]), r.edge(parts[1]), r.edge(parts[2])}, [kept](Recorder& rec, Gradients&) {
    Gradients result;
    for (std::size_t i = 0; i < 3; ++i)
      result.push_back(rec.empty(kept[i].shape(), kept[i].dtype(), "gradient of the attention's input"));
    return result;
  });
  return out;
}

}  // namespace membill
