#include "blocks/lfm2.h"

#include "blocks/channel_convolution.h"

namespace membill {
namespace {

// Lfm2ShortConv: one projection makes what goes in and two gates, one before the convolution and one behind it.
Tensor short_convolution(Forward& f, const LayerContext& layer, const Tensor& hidden) {
  Recorder& r = f.r;
  const Tensor all = projected_channels_first(f, layer.modules.at("conv.in_proj"), hidden);
  const auto [before, behind, x] = r.split_in_three(all, {f.dims.N, f.dims.h});
  Tensor mixed = r.mul(before, x, "gated input of the convolution");
  const Size more = f.dims.s + layer.dims.linear.kernel - Size(1);
  const DType type = mixed.dtype();
  const Tensor longer =
      channel_convolution(f, mixed, layer.modules.at("conv.conv").weight, {f.dims.b * more, f.dims.h});
  mixed = r.cast(part_of(f, longer, mixed.shape(), "gradient of the first tokens, zero-filled"), type);
  return apply_linear(f, layer.modules.at("conv.out_proj"), r.mul(behind, mixed, "gated output of the convolution"));
}

}  // namespace

LlamaArchitecture::AttentionNames Lfm2Architecture::attention_names() const {
  return {"self_attn.out_proj", "self_attn.q_layernorm", "self_attn.k_layernorm"};
}

Tensor Lfm2Architecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  Tensor gate = f.r.silu(apply_linear(f, layer.modules.at("feed_forward.w1"), hidden));
  Tensor product =
      f.r.mul(std::move(gate), apply_linear(f, layer.modules.at("feed_forward.w3"), hidden), "gated product");
  return apply_linear(f, layer.modules.at("feed_forward.w2"), std::move(product));
}

// The layer's input is a variable until its end.
Tensor Lfm2Architecture::layer(Forward& f, const LayerContext& layer, Tensor hidden, const LayerInputs& inputs) const {
  Recorder& r = f.r;
  const Tensor residual = hidden;
  Tensor weights;
  hidden = [&] {
    const Tensor normed = norm(f, layer.modules.at("operator_norm"), hidden);
    return layer.kind.linear_attention ? short_convolution(f, layer, normed)
                                       : attention(f, layer, normed, inputs, weights);
  }();
  hidden = r.add(hidden, residual, "residual stream");
  const Tensor fed = mlp(f, layer, norm(f, layer.modules.at("ffn_norm"), hidden));
  const ItemScope scope(r, f.items.boundary);
  return r.add(hidden, fed, "layer output");
}

Tensor Lfm2Architecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  return norm(f, outer.at("model.embedding_norm"), std::move(hidden));
}

}  // namespace membill
