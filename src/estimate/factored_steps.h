// The loops of optimizers with factored second moments: Transformers' Adafactor, CAME, AdaLOMO.
#pragma once

#include "estimate/parameter_step.h"

namespace membill {

class FactoredStep : public ParameterStep {
 public:
  using ParameterStep::ParameterStep;

 protected:
  [[nodiscard]] Tensor wide(const Shape& shape) const { return make(shape, DType::fp32); }
  // Means of `rows` and columns into the factors, then their product (_approx_sq_grad).
  [[nodiscard]] Tensor factored(const TrainedParameter& trained) const;
  // x in fp32: itself, when it is.
  [[nodiscard]] Tensor widened(const Tensor& x) const { return x.dtype() == DType::fp32 ? Tensor() : wide(x.shape()); }

 private:
  void mean_of_rows(const Size& rows, const Shape& columns) const;
};

// transformers 5.24 optimization.py Adafactor.step.
class AdafactorStep : public FactoredStep {
 public:
  using FactoredStep::FactoredStep;
  void update(const TrainedParameter& trained, bool has_states) override;

 private:
  Tensor gradient_, data_, update_;
};

// came-pytorch 0.1.3 CAME.step.
class CameStep : public FactoredStep {
 public:
  using FactoredStep::FactoredStep;
  void update(const TrainedParameter& trained, bool has_states) override;

 private:
  Tensor gradient_, update_, residual_, approximation_;
};

// lomo-optim 0.1.1 adalomo.py fuse_update: a hook, which returns after one parameter.
class AdaLomoStep : public FactoredStep {
 public:
  using FactoredStep::FactoredStep;
  void update(const TrainedParameter& trained, bool has_states) override;
  [[nodiscard]] bool waits_for_next() const override { return true; }
};

// lomo.py fuse_update.
class LomoStep : public FactoredStep {
 public:
  using FactoredStep::FactoredStep;
  void update(const TrainedParameter& trained, bool has_states) override;
  [[nodiscard]] bool waits_for_next() const override { return true; }
};

}  // namespace membill
