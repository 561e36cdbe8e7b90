#include "blocks/parameter_adapter.h"

namespace membill {

// An engine that gathers parameters knows the parameter itself only.
AdaptedParameter::AdaptedParameter(Forward& f, Module& module) : f_(f), module_(module) {
  adapted_ = module.adapter != nullptr && f.adapters && f.r.parameter_use() == nullptr;
  if (!adapted_) return;
  LoraAdapter& adapter = *module.adapter;
  const DType type = adapter.matrices > 1 ? module.weight.value.dtype() : adapter.down.value.dtype();
  left_ = f.r.cast(f.r.view(adapter.up.value, adapter.up.value.shape()), type);
  right_ = f.r.cast(f.r.view(adapter.down.value, adapter.down.value.shape()), type);
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
    r.pause_autocast();
    sum_.value = r.batched_matmul(left_, right_, weight.shape(), "experts with their adapters");
    r.resume_autocast();
    return sum_;
  }
  Tensor delta = r.mul_scalar(r.batched_matmul(left_, right_, weight.shape(), "adapter's matrix"), "scaled");
  sum_.value = r.add(weight, r.cast(std::move(delta), weight.dtype()), "router with its adapter");
  return sum_;
}

}  // namespace membill
