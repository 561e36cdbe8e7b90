// transformers 5.24 models/clip/modeling_clip.py, models/llava/modeling_llava.py.
#include "blocks/attention.h"
#include "blocks/layer_norm_parts.h"
#include "blocks/layers.h"
#include "blocks/vision.h"

namespace membill {
namespace {

Shape all_rows(const TowerForward& t) { return {t.dims.N, Size(t.spec.width)}; }

// Conv2d gives channels first, and takes its gradient so: what comes back is copied.
Tensor embedded_patches(TowerForward& t, Tensor pixels, Forward& text) {
  Recorder& r = t.f.r;
  Module& convolution = t.at("embeddings.patch_embedding");
  Tensor typed = r.cast(std::move(pixels), convolution.weight.value.dtype());
  typed = r.view(typed, {t.patches, Size(t.spec.channels * t.spec.patch * t.spec.patch)});
  const Tensor out = t.begun(r.linear(std::move(typed), convolution.weight, convolution.bias.get()), text);
  Tensor seen = r.view(out, out.shape());
  if (r.needs_node({&out}))
    r.record({&seen}, {r.edge(out)}, [shape = out.shape(), type = out.dtype()](Recorder& rec, Gradients&) {
      return Gradients{rec.empty(shape, type, "gradient, channels first")};
    });
  return seen;
}

// class_embedding.expand(): its gradient is a sum over images, also of one.
Tensor class_of_each(TowerForward& t) {
  Recorder& r = t.f.r;
  const Tensor one = t.at("embeddings.class_embedding").weight.value;
  Tensor all = r.view(one, {t.dims.b, Size(t.spec.width)});
  if (r.needs_node({&one}))
    r.record({&all}, {r.edge(one)},
             [shape = one.shape(), type = one.dtype(), own = t.f.items.gradients](Recorder& rec, Gradients&) {
               return Gradients{rec.empty(shape, type, "gradient of the class", own)};
             });
  return all;
}

// CLIPVisionEmbeddings.
Tensor clip_embeddings(TowerForward& t, Tensor pixels, Forward& text) {
  Recorder& r = t.f.r;
  const Tensor patches = embedded_patches(t, std::move(pixels), text);
  const Tensor classes = class_of_each(t);
  const Tensor joined = r.concatenate(classes, patches, all_rows(t));
  const Tensor places = r.placeholder({t.dims.s, Size(1)}, DType::int64);
  return r.add(joined, apply_embedding(t.f, t.at("embeddings.position_embedding"), places), "patches and places");
}

Tensor clip_attention(TowerForward& t, const std::string& layer, const Tensor& x) {
  const auto project = [&](const char* name) {
    return seen_as_heads(t.f, apply_linear(t.f, t.at(layer + "self_attn." + name), x), t.heads.a, t.heads.d);
  };
  const Tensor q = project("q_proj"), k = project("k_proj"), v = project("v_proj");
  const AttentionCall call{t.heads, t.kind.attention, choose_attention(t.f, t.kind, false), {}};
  const Tensor output = run_whole_attention(t.f, call, q, k, v);
  return apply_linear(t.f, t.at(layer + "self_attn.out_proj"), output);
}

Tensor clip_block(TowerForward& t, const std::string& layer, const Tensor& input) {
  Recorder& r = t.f.r;
  const std::string start = t.spec.tower + layer + "mlp.";
  Tensor hidden = layer_norm(t.f, t.at(layer + "layer_norm1"), input);
  hidden = r.add(input, clip_attention(t, layer, hidden), "residual stream");
  Tensor out = layer_norm(t.f, t.at(layer + "layer_norm2"), hidden);
  out = plain_mlp(t.f, t.modules, {start + "fc1", start + "fc2", t.spec.activation}, out);
  return r.add(std::move(hidden), std::move(out), "residual stream");
}

// The states without the class's own, which of several images lie apart and so are copied; then LlavaMultiModalProjector.
Tensor llava_features(TowerForward& t, const Tensor& states) {
  Recorder& r = t.f.r;
  const Size tokens = Size(t.images * t.grid.tokens);
  const Tensor patches = part_of(t.f, states, {tokens, states.width()}, "gradient of the states, zero-filled");
  Tensor x = patches;
  if (t.images > 1) x = r.contiguous_copy(patches, patches.shape(), "states without the class");
  x = apply_linear(t.f, t.modules.at("model.multi_modal_projector.linear_1"), std::move(x));
  x = r.gelu(std::move(x));
  return apply_linear(t.f, t.modules.at("model.multi_modal_projector.linear_2"), std::move(x));
}

}  // namespace

ImageFeatures clip_tower(TowerForward& t, Forward& text, Tensor pixels) {
  Recorder& r = t.f.r;
  t.dims.b = t.dims.samples = Size(t.images);
  t.dims.s = Size(t.grid.patches() + 1);
  t.dims.N = t.dims.b * t.dims.s;
  const Tensor begun = layer_norm(t.f, t.at("pre_layrnorm"), clip_embeddings(t, std::move(pixels), text));
  Tensor hidden = begun, selected;
  for (std::int64_t number = 0; number < t.spec.depth; ++number) {
    if (number == t.spec.feature_layer) selected = hidden;
    const std::string layer = "encoder.layers." + std::to_string(number) + ".";
    hidden = t.run_layer(layer, std::move(hidden), {}, [&t, layer](Tensor x) {
      const ItemScope scope(t.f.r, t.f.items.vision);
      return clip_block(t, layer, x);
    });
  }
  {
    const Tensor classes = part_of(t.f, hidden, {t.dims.b, hidden.width()}, "gradient of the states, zero-filled");
    const Tensor pooled = layer_norm(t.f, t.at("post_layernorm"), classes);
  }
  const Tensor features = llava_features(t, selected);
  const std::vector<Shape> images(static_cast<std::size_t>(t.images), {Size(t.grid.tokens), features.width()});
  return {{hidden, selected}, r.split(features, images)};
}

}  // namespace membill
