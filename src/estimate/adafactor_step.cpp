#include "estimate/adafactor_step.h"

#include "estimate/parameter_walk.h"
#include "program/reduction.h"

namespace membill {
namespace {

class AdafactorStep {
 public:
  AdafactorStep(Recorder& recorder, OptimizerStates& states)
      : r_(recorder), states_(states), item_(recorder.writer().item("step.temporaries")) {}

  // The body of the loop. Its locals outlive it until the next turn assigns them.
  void update(const TrainedParameter& trained, bool has_states) {
    const Tensor& value = trained.parameter->value;
    gradient_.drop();
    if (trained.parameter->gradient.dtype() != DType::fp32) gradient_ = make(value.shape());
    if (!has_states) states_.create(trained);
    data_.drop();
    if (value.dtype() != DType::fp32) data_ = make(value.shape());
    size_of();
    Tensor square = make(value.shape());
    update_ = make(value.shape());
    square.drop();
    update_ = trained.matrix().width == Size(1) ? make(value.shape()) : factored(trained);
    size_of();
    make({Size(1), Size(1)});
    make(value.shape());
  }

 private:
  Tensor make(const Shape& shape) { return r_.empty(shape, DType::fp32, "Adafactor temporary", item_); }

  // tensor.norm(2) / sqrt(elements)
  void size_of() {
    const Tensor norm = make({Size(1), Size(1)});
    make({Size(1), Size(1)});
  }

  // Means into the factors, then _approx_sq_grad.
  Tensor factored(const TrainedParameter& trained) {
    const Shape& matrix = trained.matrix();
    const Shape rows_of_all{trained.stacked * matrix.rows, Size(1)},
        columns_of_all{trained.stacked * matrix.width, Size(1)};
    make(rows_of_all);
    mean_of_rows(matrix.rows, columns_of_all);
    Tensor mean = make({trained.stacked, Size(1)});
    Tensor rows = make(rows_of_all);
    mean.drop();
    const Tensor columns = make(columns_of_all);
    Tensor root = make(trained.parameter->value.shape());
    rows.drop();
    return root;
  }

  void mean_of_rows(const Size& rows, const Shape& columns) {
    const ItemScope scope(r_, {item_, item_});
    const Tensor mean = make(columns);
    use_reduction_scratch(r_, rows, columns.rows);
  }

  Recorder& r_;
  OptimizerStates& states_;
  ItemId item_;
  Tensor gradient_, data_, update_;
};

}  // namespace

void step_adafactor(Recorder& recorder, std::vector<TrainedParameter>& trained, OptimizerStates& states,
                    std::vector<bool>& has_states) {
  AdafactorStep step(recorder, states);
  walk_parameters(recorder.writer(), trained, [&](TrainedParameter& one, std::size_t i) {
    if (!one.parameter->gradient.defined()) return;
    step.update(one, has_states[i]);
    has_states[i] = true;
  });
}

}  // namespace membill
