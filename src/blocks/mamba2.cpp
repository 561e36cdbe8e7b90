#include "blocks/mamba2.h"

#include "blocks/channel_convolution.h"
#include "blocks/layers.h"
#include "blocks/mamba2_scan.h"

namespace membill {
namespace {

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

// Falcon-H1's multipliers of each column, a buffer in the model's type.
Tensor times_multipliers(Recorder& r, const Module& module, const Tensor& projected) {
  const DType type = module.quantized != nullptr ? module.quantized->compute : module.weight.value.dtype();
  return r.mul(projected, r.placeholder({projected.width(), Size(1)}, type), "scaled projection");
}

}  // namespace

Tensor mamba2_mixer(Forward& f, const LayerContext& layer, const std::string& prefix, const Tensor& hidden,
                    const Mamba2Style& style) {
  Recorder& r = f.r;
  const auto part = [&](const char* name) -> Module& { return layer.modules.at(prefix + name); };
  const StateSpaceDims& d = layer.dims.space;
  const Size inner = d.heads * d.width, shared = d.groups * d.state;
  Tensor scaled = style.multiplied ? r.mul_scalar(hidden, "scaled input") : Tensor();
  Tensor all = apply_linear(f, part("in_proj"), style.multiplied ? scaled : hidden);
  if (style.multiplied) all = times_multipliers(r, part("in_proj"), all);
  const Tensor decay = r.neg(r.exp(r.cast(part("A_log").weight.value, DType::fp32)));
  const auto [gate, mixed, time_step] =
      r.split_in_three(all, {f.dims.N, inner}, {f.dims.N, inner + Size(2) * shared}, {f.dims.N, d.heads});
  const Tensor convolved = causal_convolution(f, part("conv1d"), d.kernel, "silu", mixed);
  scaled.drop();  // its variable takes a part of what was convolved
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
