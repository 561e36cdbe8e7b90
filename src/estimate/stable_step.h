// torch-optimi 0.3.3 stableadamw.py: its Triton kernels make nothing for a moment.
#pragma once

#include "estimate/parameter_step.h"

namespace membill {

class StableStep : public ParameterStep {
 public:
  using ParameterStep::ParameterStep;
  // The compensation of rounding is as large as a 16-bit parameter.
  void update(const TrainedParameter& trained, bool has_states) override {
    if (has_states) return;
    const DType type = states_.own_type(trained);
    const bool wide = type == DType::fp32;
    states_.create(trained);
    states_.add("optimizer.kahan", Size(1), type, trained);
    states_.add("optimizer.kahan", wide ? Size(1) : trained.elements, wide ? DType::uint8 : type, trained);
    states_.add("optimizer.kahan", Size(1), DType::fp32, trained);
  }
};

}  // namespace membill
