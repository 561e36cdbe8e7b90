#include "blocks/mamba2.h"

#include "blocks/channel_convolution.h"
#include "blocks/layers.h"
#include "blocks/mamba2_scan.h"

namespace membill {
namespace {

// causal_conv1d_fn: an activation over the first tokens of a longer convolution.
Tensor convolve(Forward& f, const LayerContext& layer, Module& module, const Tensor& mixed) {
  Recorder& r = f.r;
  const Size more = f.dims.b * (f.dims.s + layer.dims.space.kernel - Size(1));
  const Tensor longer = channel_convolution(f, mixed, module.weight, {more, mixed.width()}, module.bias.get());
  const Tensor first = part_of(f, longer, mixed.shape(), "gradient of the first tokens, zero-filled");
  return r.cast(r.silu(first), mixed.dtype());
}

Tensor gated(Recorder& r, const Tensor& x, const Tensor& gate) {
  return r.mul(x, r.silu(r.cast(gate, DType::fp32)), "gated output");
}

// RMSNormGated over the channels of each group.
Tensor grouped_norm(Forward& f, const LayerContext& layer, Module& module, const Tensor& x, const Tensor& gate,
                    const Mamba2Style& style) {
  Recorder& r = f.r;
  const StateSpaceDims& d = layer.dims.space;
  const Shape groups{f.dims.N * d.groups, r.symbols().ceil_div(d.heads * d.width, d.groups)};
  Tensor hidden = style.gate_after_norm ? r.cast(x, DType::fp32) : gated(r, r.cast(x, DType::fp32), gate);
  hidden = r.view(hidden, groups);
  {
    const Tensor variance = r.mean_of_rows(r.square(hidden));
    hidden = r.mul(hidden, r.rsqrt(r.add_scalar(variance)), "normalised");
  }
  hidden = r.view(r.mul(module.weight.value, hidden, "norm output"), x.shape());
  return style.gate_after_norm ? gated(r, hidden, gate) : hidden;
}

Tensor projected(Forward& f, Module& module, const Tensor& hidden, const Mamba2Style& style) {
  if (!style.multiplied) return apply_linear(f, module, hidden);
  Recorder& r = f.r;
  const Tensor all = apply_linear(f, module, r.mul_scalar(hidden, "scaled input"));
  const DType type = module.quantized != nullptr ? module.quantized->compute : module.weight.value.dtype();
  return r.mul(all, r.placeholder({all.width(), Size(1)}, type), "scaled projection");
}

}  // namespace

Tensor mamba2_mixer(Forward& f, const LayerContext& layer, const std::string& prefix, const Tensor& hidden,
                    const Mamba2Style& style) {
  Recorder& r = f.r;
  const auto part = [&](const char* name) -> Module& { return layer.modules.at(prefix + name); };
  const StateSpaceDims& d = layer.dims.space;
  const Size inner = d.heads * d.width, shared = d.groups * d.state;
  const Tensor all = projected(f, part("in_proj"), hidden, style);
  const Tensor decay = r.neg(r.exp(r.cast(part("A_log").weight.value, DType::fp32)));
  const auto [gate, mixed, time_step] =
      r.split_in_three(all, {f.dims.N, inner}, {f.dims.N, inner + Size(2) * shared}, {f.dims.N, d.heads});
  const Tensor convolved = convolve(f, layer, part("conv1d"), mixed);
  const auto [x, input, output] =
      r.split_in_three(convolved, {f.dims.N, inner}, {f.dims.N, shared}, {f.dims.N, shared});
  const Shape heads{f.dims.N * d.heads, d.width}, groups{f.dims.N * d.groups, d.state};
  Tensor scanned =
      mamba2_scan(f, layer, {r.view(x, heads), time_step, decay, r.view(input, groups), r.view(output, groups)},
                  part("D"), part("dt_bias"));
  scanned = r.view(scanned, {f.dims.N, inner});
  Module* const norm = layer.modules.find(prefix + "norm");
  const Tensor gated_output = norm != nullptr ? grouped_norm(f, layer, *norm, scanned, gate, style)
                                              : r.mul(scanned, r.silu(gate), "gated output");
  return apply_linear(f, part("out_proj"), r.cast(gated_output, hidden.dtype()));
}

}  // namespace membill
