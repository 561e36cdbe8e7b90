// Low-rank adapters on bare parameters: fused experts and routers (peft 0.21.2 tuners/lora/layer.py ParamWrapper).
#pragma once

#include "blocks/forward.h"

namespace membill {

// The parameter of `module` while its own module runs: with an adapter, the sum of both, made at the first use.
class AdaptedParameter {
 public:
  AdaptedParameter(Forward& f, Module& module);
  [[nodiscard]] Parameter& get();

 private:
  [[nodiscard]] Tensor experts_with_adapters() const;

  Forward& f_;
  Module& module_;
  Tensor left_, right_;  // factors of the experts' adapters in the parameter's type
  Parameter sum_;
  bool adapted_ = false, made_ = false;
};

}  // namespace membill
