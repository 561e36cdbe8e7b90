// Adam-mini's loop.
#pragma once

#include "estimate/parameter_step.h"

namespace membill {

// adam-mini 1.1.1 adam_mini/adam_mini.py: biases as Adam's, a mean of squares for each row of a matrix or for a whole norm.
class AdamMiniStep : public ParameterStep {
 public:
  using ParameterStep::ParameterStep;
  void update(const TrainedParameter& trained, bool has_states) override;

 private:
  // sqrt(v) over its bias correction, which stays.
  void make_denominator(const Shape& shape, DType type);

  Tensor mean_, denominator_, size_, update_;
};

}  // namespace membill
