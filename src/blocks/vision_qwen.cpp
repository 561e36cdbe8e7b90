// transformers 5.24 models/qwen2_vl/modeling_qwen2_vl.py, models/qwen2_5_vl/modeling_qwen2_5_vl.py.
#include "blocks/layer_norm_parts.h"
#include "blocks/layers.h"
#include "blocks/vision.h"

namespace membill {
namespace {

constexpr int kImageAxes = 2;

bool has_windows(const VisionSpec& spec) { return spec.window > 0; }

// Rows of merged neighbours in the order of windows, and back. The index comes from the host.
Tensor reordered(TowerForward& t, const Tensor& x, const Size& rows) {
  Recorder& r = t.f.r;
  const Size width = r.symbols().ceil_div(x.shape().elements(), rows);
  const Shape places{rows, Size(1)};
  const Tensor index = r.placeholder(places, DType::int64), copied = r.empty(places, DType::int64, "order of windows");
  return r.view(r.index_rows(r.view(x, {rows, width}), index, width), x.shape());
}

// VisionRotaryEmbedding: fp32 tables of height and width.
RotaryTables vision_tables(TowerForward& t) {
  Recorder& r = t.f.r;
  const Size half = r.symbols().ceil_div(t.heads.d, Size(2)), quarter = r.symbols().ceil_div(t.heads.d, Size(4));
  const Shape angles{t.patches * Size(kImageAxes), quarter};
  Tensor positions = r.empty({t.patches, Size(kImageAxes)}, DType::fp32, "positions in fp32");
  const Tensor frequencies = r.empty(angles, DType::fp32, "rotary angles");
  positions.drop();
  const auto scaled = [&](const char* label) { return r.mul_scalar(r.empty(angles, DType::fp32, label)); };
  const auto doubled = [&](const char* label) {
    const Tensor both = r.empty({t.patches, half}, DType::fp32, "angles of both axes");
    return r.empty({t.patches, t.heads.d}, DType::fp32, label);
  };
  Tensor cos = scaled("cos"), sin = scaled("sin");
  cos = doubled("cos, twice");
  sin = doubled("sin, twice");
  return {cos, sin};
}

Tensor normed_patches(TowerForward& t, const std::string& name, const Tensor& x) {
  Module& module = t.at(name);
  return module.bias != nullptr ? layer_norm(t.f, module, x) : llama_rms_norm(t.f, module, x);
}

// One matrix for queries, keys and values: unbind's gradient is a stack, which its reshape copies.
std::array<Tensor, 3> queries_keys_values(TowerForward& t, const Tensor& joined) {
  Recorder& r = t.f.r;
  const Shape rows{t.patches * Size(3) * t.heads.a, t.heads.d};
  Tensor seen = viewed(r, joined, rows, "gradient, tokens first");
  return r.split_in_three(std::move(seen), {t.patches * t.heads.a, t.heads.d});
}

// apply_rotary_pos_emb_vision: in fp32.
void rotate_patches(TowerForward& t, Tensor& q, Tensor& k, const RotaryTables& tables) {
  Recorder& r = t.f.r;
  const DType type = q.dtype();
  const Tensor wide_q = r.cast(q, DType::fp32), wide_k = r.cast(k, DType::fp32);
  Tensor turned_q = apply_rotary(t.f, wide_q, tables.cos, tables.sin);
  Tensor turned_k = apply_rotary(t.f, wide_k, tables.cos, tables.sin);
  turned_q = r.cast(std::move(turned_q), type);
  turned_k = r.cast(std::move(turned_k), type);
  q = std::move(turned_q);
  k = std::move(turned_k);
}

Tensor qwen_attention(TowerForward& t, const std::string& layer, const Tensor& x, const RotaryTables& tables,
                      const std::vector<std::int64_t>& lengths) {
  auto [q, k, v] = queries_keys_values(t, apply_linear(t.f, t.at(layer + "attn.qkv"), x));
  rotate_patches(t, q, k, tables);
  const Tensor output = t.attend(lengths, q, k, v);
  return apply_linear(t.f, t.at(layer + "attn.proj"), output);
}

Tensor qwen_mlp(TowerForward& t, const std::string& layer, const Tensor& x) {
  const std::string start = t.spec.tower + layer + "mlp.";
  if (t.modules.find(start + "gate_proj") != nullptr) return gated_mlp(t.f, t.modules, start, t.spec.activation, x);
  return plain_mlp(t.f, t.modules, {start + "fc1", start + "fc2", t.spec.activation}, x);
}

Tensor qwen_block(TowerForward& t, const std::string& layer, const Tensor& input, const RotaryTables& tables,
                  const std::vector<std::int64_t>& lengths) {
  Recorder& r = t.f.r;
  const Tensor hidden = r.add(
      input, qwen_attention(t, layer, normed_patches(t, layer + "norm1", input), tables, lengths), "residual stream");
  return r.add(hidden, qwen_mlp(t, layer, normed_patches(t, layer + "norm2", hidden)), "residual stream");
}

// PatchMerger.
Tensor merged_patches(TowerForward& t, const Tensor& hidden) {
  Recorder& r = t.f.r;
  const Size tokens = Size(t.images * t.grid.tokens), width = Size(t.spec.width * t.spec.merge * t.spec.merge);
  Tensor x = r.view(normed_patches(t, "merger.ln_q", hidden), {tokens, width});
  x = r.gelu(apply_linear(t.f, t.at("merger.mlp.0"), std::move(x)));
  return apply_linear(t.f, t.at("merger.mlp.2"), std::move(x));
}

std::vector<std::int64_t> for_each_image(const std::vector<std::int64_t>& lengths, std::int64_t images) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < images; ++i) all.insert(all.end(), lengths.begin(), lengths.end());
  return all;
}

}  // namespace

ImageFeatures qwen_tower(TowerForward& t, Forward& text, Tensor pixels) {
  Recorder& r = t.f.r;
  Module& patch_embedding = t.at("patch_embed.proj");
  const Tensor typed = r.cast(std::move(pixels), patch_embedding.weight.value.dtype());
  const Tensor positions = r.empty({t.patches, Size(kImageAxes)}, DType::int64, "positions of patches");
  const Size tokens = Size(t.images * t.grid.tokens);
  Tensor hidden = t.begun(r.linear(typed, patch_embedding.weight, patch_embedding.bias.get()), text);
  if (has_windows(t.spec)) hidden = reordered(t, hidden, tokens);
  RotaryTables tables = vision_tables(t);
  if (has_windows(t.spec)) tables = {reordered(t, tables.cos, tokens), reordered(t, tables.sin, tokens)};
  const std::vector<std::int64_t> whole = for_each_image({t.grid.patches()}, t.images);
  const std::vector<std::int64_t> windows =
      has_windows(t.spec) ? for_each_image(window_lengths(t.spec, t.grid), t.images) : whole;
  for (std::int64_t number = 0; number < t.spec.depth; ++number) {
    const std::string layer = "blocks." + std::to_string(number) + ".";
    const bool sees_all = std::count(t.spec.whole_image_layers.begin(), t.spec.whole_image_layers.end(), number) > 0;
    hidden = t.run_layer(layer, std::move(hidden), {tables.cos, tables.sin},
                         [&t, layer, tables, lengths = sees_all ? whole : windows](Tensor x) {
                           const ItemScope scope(t.f.r, t.f.items.vision);
                           return qwen_block(t, layer, x, tables, lengths);
                         });
  }
  Tensor features = merged_patches(t, hidden);
  if (has_windows(t.spec)) features = reordered(t, features, tokens);
  const std::vector<Shape> images(static_cast<std::size_t>(t.images), {Size(t.grid.tokens), features.width()});
  return {{std::move(hidden)}, r.split(features, images)};
}

}  // namespace membill
