#include "estimate/factored_steps.h"

#include "program/reduction.h"

namespace membill {

Tensor FactoredStep::factored(const TrainedParameter& trained) const {
  const Shape& matrix = trained.matrix();
  const Shape rows_of_all{trained.stacked * matrix.rows, Size(1)},
      columns_of_all{trained.stacked * matrix.width, Size(1)};
  static_cast<void>(wide(rows_of_all));
  mean_of_rows(matrix.rows, columns_of_all);
  Tensor mean = wide({trained.stacked, Size(1)});
  const Tensor rows = wide(rows_of_all);
  mean.drop();
  const Tensor columns = wide(columns_of_all);
  return wide(trained.parameter->value.shape());
}

void FactoredStep::mean_of_rows(const Size& rows, const Shape& columns) const {
  const ItemScope scope(r_, {item_, item_});
  const Tensor mean = wide(columns);
  use_reduction_scratch(r_, rows, columns.rows);
}

void AdafactorStep::update(const TrainedParameter& trained, bool has_states) {
  const Tensor& value = trained.parameter->value;
  gradient_.drop();
  gradient_ = widened(trained.parameter->gradient);
  if (!has_states) states_.create(trained);
  data_.drop();
  data_ = widened(value);
  size_of();
  Tensor square = wide(value.shape());
  update_ = wide(value.shape());
  square.drop();
  update_ = trained.matrix().width == Size(1) ? wide(value.shape()) : factored(trained);
  size_of();
  static_cast<void>(scalar(DType::fp32));
  static_cast<void>(wide(value.shape()));
}

void CameStep::update(const TrainedParameter& trained, bool has_states) {
  const Shape& shape = trained.parameter->value.shape();
  const bool is_vector = trained.matrix().width == Size(1);
  gradient_.drop();
  gradient_ = widened(trained.parameter->gradient);
  if (!has_states) states_.create(trained);
  size_of();
  Tensor square = wide(shape);
  update_ = wide(shape);
  square.drop();
  update_ = is_vector ? wide(shape) : factored(trained);
  size_of();
  static_cast<void>(scalar(DType::fp32));
  Tensor difference = wide(shape);
  square = wide(shape);
  difference.drop();
  residual_ = wide(shape);
  square.drop();
  if (is_vector) {
    update_ = wide(shape);
  } else {
    approximation_ = factored(trained);
    update_ = approximation_;
  }
  static_cast<void>(wide(shape));
}

void AdaLomoStep::update(const TrainedParameter& trained, bool has_states) {
  Parameter& parameter = *trained.parameter;
  const Shape& shape = parameter.value.shape();
  if (!has_states) states_.create(trained);
  const Tensor gradient = parameter.gradient.dtype() == DType::fp32 ? parameter.gradient : wide(shape);
  parameter.gradient.drop();
  Tensor square = wide(shape), update = wide(shape);
  square.drop();
  update = trained.matrix().width == Size(1) ? wide(shape) : factored(trained);
  size_of();
  static_cast<void>(scalar(DType::fp32));
  const Tensor value = widened(parameter.value);
  size_of();
}

void LomoStep::update(const TrainedParameter& trained, bool) {
  Parameter& parameter = *trained.parameter;
  const Tensor gradient =
      parameter.gradient.dtype() == DType::fp32 ? parameter.gradient : wide(parameter.value.shape());
  parameter.gradient.drop();
  const Tensor value = widened(parameter.value);
}

}  // namespace membill
