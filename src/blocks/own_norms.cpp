#include "blocks/own_norms.h"

namespace membill {
namespace {

// x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
Tensor normalise(Recorder& r, const Tensor& x) {
  return r.mul(x, r.rsqrt(r.add_scalar(r.mean_of_rows(r.square(x)))), "normalised");
}

}  // namespace

Tensor gemma_rms_norm(Forward& f, Module& module, Tensor x) {
  Recorder& r = f.r;
  Tensor output = normalise(r, r.cast(x, DType::fp32));
  output =
      r.mul(output, r.add_scalar(r.cast(module.weight.value, DType::fp32), "1 + norm weight"), "norm output in fp32");
  return r.cast(output, x.dtype());
}

Tensor gemma4_rms_norm(Forward& f, Module* module, Tensor x) {
  Recorder& r = f.r;
  Tensor wide = r.cast(x, DType::fp32);
  const Tensor mean_squared = r.add_scalar(r.mean_of_rows(r.square(wide)));
  Tensor output = r.mul(wide, r.root_of_power(mean_squared), "normalised");
  wide.drop();
  if (module != nullptr) output = r.mul(output, r.cast(module->weight.value, DType::fp32), "norm output in fp32");
  return r.cast(output, x.dtype());
}

Tensor olmo2_rms_norm(Forward& f, Module& module, Tensor x) {
  Recorder& r = f.r;
  Tensor hidden = r.cast(x, DType::fp32);
  const Tensor variance = r.mean_of_rows(r.square(hidden));
  hidden = r.mul(hidden, r.rsqrt(r.add_scalar(variance)), "normalised");
  return r.cast(r.mul(module.weight.value, hidden, "norm output in fp32"), x.dtype());
}

Tensor cohere_layer_norm(Forward& f, Module& module, Tensor x) {
  Recorder& r = f.r;
  Tensor hidden = r.cast(x, DType::fp32);
  const Tensor mean = r.mean_of_rows(hidden);
  const Tensor variance = r.mean_of_rows(r.square(r.sub(hidden, mean, "centred")));
  Tensor centred = r.sub(hidden, mean, "centred");
  hidden = r.mul(std::move(centred), r.rsqrt(r.add_scalar(variance)), "normalised");
  hidden = r.mul(r.cast(module.weight.value, DType::fp32), hidden, "norm output in fp32");
  return r.cast(hidden, x.dtype());
}

Tensor olmo_layer_norm(Forward& f, Tensor x) {
  Recorder& r = f.r;
  return r.cast(r.plain_layer_norm(r.cast(x, DType::fp32)), x.dtype());
}

}  // namespace membill
