#include "estimate/adam_mini_step.h"

namespace membill {

void AdamMiniStep::make_denominator(const Shape& shape, DType type) {
  const Tensor root = make(shape, type);
  denominator_ = make(shape, type);
}

void AdamMiniStep::update(const TrainedParameter& trained, bool has_states) {
  if (!has_states) states_.create(trained);
  const Shape& shape = trained.parameter->value.shape();
  const DType type = states_.own_type(trained);
  const bool is_vector = shape.width == Size(1);
  if (is_vector && trained.role != TensorRole::norm) return make_denominator(shape, type);
  const Shape line{is_vector ? Size(1) : shape.rows, Size(1)};
  {
    const Tensor squares = make(shape, trained.parameter->gradient.dtype());
    mean_ = make(line, type);
  }
  make_denominator(line, type);
  {
    const Tensor inverse = make(line, type);
    size_ = make(line, type);
  }
  update_ = make(shape, type);
  static_cast<void>(make(shape, type));  // its negative
}

}  // namespace membill
