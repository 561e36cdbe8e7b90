#include "blocks/fp32_norm.h"

#include "blocks/layers.h"

namespace membill {

// torchtune: F.rms_norm over x.float() with a 16-bit scale, which has no fused kernel (torch 2.15 layer_norm.cpp); litgpt's RMSNorm.
Tensor fp32_rms_norm(Forward& f, Module& module, const Tensor& x) {
  Recorder& r = f.r;
  const Tensor wide = r.cast(x, DType::fp32);
  const Tensor scale = r.rsqrt(r.mean_of_rows(r.square(wide)));
  Tensor normalised = r.mul(wide, scale, "normalised");
  return r.cast(r.mul(std::move(normalised), module.weight.value, "norm output in fp32"), x.dtype());
}

Tensor rotate_halves(Forward& f, const Tensor& x) {
  Recorder& r = f.r;
  const Size half = r.symbols().ceil_div(x.width(), Size(2));
  const Tensor first = r.slice(x, half), second = r.slice(x, half);
  const Tensor rotated = r.concatenate(r.neg(second), first, x.shape());
  return r.add(r.mul_scalar(x, "turned"), r.mul_scalar(rotated, "turned halves"));
}

Tensor tune_mlp(Forward& f, const Modules& modules, const Tensor& x) {
  Tensor gate = f.r.silu(apply_linear(f, modules.at("mlp.gate_proj"), x));
  Tensor product = f.r.mul(std::move(gate), apply_linear(f, modules.at("mlp.up_proj"), x), "gated product");
  return apply_linear(f, modules.at("mlp.down_proj"), std::move(product));
}

}  // namespace membill
