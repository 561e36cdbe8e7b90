#include "blocks/parameter_adapter.h"

#include "blocks/layers.h"

namespace membill {

// Experts' sum is made once to see whether it fits (torch/nn/utils/parametrize.py). An engine that gathers parameters knows the parameter itself only.
AdaptedParameter::AdaptedParameter(Forward& f, Module& module) : f_(f), module_(module) {
  adapted_ = module.adapter != nullptr && f.adapters && f.r.parameter_use() == nullptr;
  if (!adapted_) return;
  LoraAdapter& adapter = *module.adapter;
  const DType type = adapter.matrices > 1 ? module.weight.value.dtype() : adapter.down.value.dtype();
  const Tensor& up = adapter.up.value;
  left_ = f.r.cast(
      adapter.matrices > 1 ? part_of(f, up, up.shape(), "gradient, experts last") : f.r.view(up, up.shape()), type);
  right_ = f.r.cast(f.r.view(adapter.down.value, adapter.down.value.shape()), type);
  if (adapter.matrices == 1) return;
  const bool grad = f.r.grad_enabled();
  f.r.set_grad_enabled(false);
  static_cast<void>(experts_with_adapters());
  f.r.set_grad_enabled(grad);
}

Tensor AdaptedParameter::experts_with_adapters() const {
  Recorder& r = f_.r;
  r.pause_autocast();
  Tensor sum = r.batched_matmul(left_, right_, module_.weight.value.shape(), "experts with their adapters");
  r.resume_autocast();
  return sum;
}

// Experts: torch.baddbmm(weight, left, right) without autocast. A single matrix: weight + (left @ right) * scaling.
Parameter& AdaptedParameter::get() {
  if (!adapted_) return module_.weight;
  if (made_) return sum_;
  made_ = true;
  Recorder& r = f_.r;
  const Tensor& weight = module_.weight.value;
  sum_.leading = module_.weight.leading;
  sum_.unit = module_.weight.unit;
  sum_.label = module_.weight.label;
  if (module_.adapter->matrices > 1) {
    sum_.value = experts_with_adapters();
    return sum_;
  }
  Tensor delta = r.mul_scalar(r.batched_matmul(left_, right_, weight.shape(), "adapter's matrix"), "scaled");
  sum_.value = r.add(weight, r.cast(std::move(delta), weight.dtype()), "router with its adapter");
  return sum_;
}

}  // namespace membill
