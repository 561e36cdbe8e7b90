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
    update_ = value.width() == Size(1) ? make(value.shape()) : factored(value.shape());
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
  Tensor factored(const Shape& shape) {
    make({shape.rows, Size(1)});
    mean_of_rows(shape);
    Tensor mean = make({Size(1), Size(1)});
    Tensor rows = make({shape.rows, Size(1)});
    mean.drop();
    const Tensor columns = make({shape.width, Size(1)});
    Tensor root = make(shape);
    rows.drop();
    return root;
  }

  void mean_of_rows(const Shape& shape) {
    const ItemScope scope(r_, {item_, item_});
    const Tensor mean = make({shape.width, Size(1)});
    use_reduction_scratch(r_, shape.rows, shape.width);
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
