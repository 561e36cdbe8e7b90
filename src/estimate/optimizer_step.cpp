#include "estimate/optimizer_step.h"

#include <stdexcept>

namespace membill {
namespace {

const OptimizerRow& row_of(const TrainingPlan& plan) {
  if (const OptimizerRow* row = find_optimizer(plan.optimizer)) return *row;
  throw std::logic_error("no optimizer " + plan.optimizer);
}

}  // namespace

OptimizerRun::OptimizerRun(Recorder& recorder, const TrainingPlan& plan, std::vector<TrainedParameter>& trained)
    : r_(recorder), plan_(plan), row_(row_of(plan)), trained_(trained) {}

// Visits the trained parameters in order, each inside its unit.
template <typename Work>
void OptimizerRun::for_each(Work work) {
  TraceWriter& writer = r_.writer();
  for (TrainedParameter& trained : trained_) {
    const int unit = trained.parameter->unit;
    if (unit != writer.unit()) {
      if (writer.unit() != TraceWriter::kNoUnit) writer.leave();
      if (unit != TraceWriter::kNoUnit) writer.enter(unit, true);
    }
    work(trained);
  }
  if (writer.unit() != TraceWriter::kNoUnit) writer.leave();
}

void OptimizerRun::construct() {
  if (row_.at_construction) create_states();
}

void OptimizerRun::create_states() {
  created_ = true;
  if (row_.code_tables > 0)
    states_.push_back(r_.empty({Size(row_.code_tables), Size(1)}, DType::uint8, "quantisation tables", r_.writer().item("optimizer.tables")));
  for_each([&](TrainedParameter& trained) {
    if (row_.fused_step_counter && row_.has_fused && plan_.optimizer_impl == OptimizerImpl::fused)
      states_.push_back(r_.empty({Size(1), Size(1)}, DType::fp32, "step count", r_.writer().item("optimizer.step")));
    for (const OptimizerState& state : row_.states) create_state(state, trained);
  });
}

void OptimizerRun::create_state(const OptimizerState& state, const TrainedParameter& trained) {
  const ItemId item = r_.writer().item("optimizer." + std::string(state.id));
  const Shape& shape = trained.parameter->value.shape();
  const std::int64_t elements = r_.symbols().evaluate(trained.elements);
  const auto add = [&](const Size& count, DType type) { states_.push_back(r_.empty({count, Size(1)}, type, "optimizer state", item)); };
  const DType own = plan_.moment_dtype.value_or(trained.parameter->value.dtype());
  const bool small = elements < row_.minimum_elements;
  const bool embedding = row_.embeddings_in_32bit && plan_.loop == Loop::trainer && trained.role == TensorRole::embedding;
  switch (state.shape) {
    case StateShape::factored_rows_and_columns:
      if (shape.width == Size(1)) return add(trained.elements, DType::fp32);
      add(shape.rows, DType::fp32);
      return add(shape.width, DType::fp32);
    case StateShape::one_per_tensor: return add(Size(1), DType::fp32);
    default: break;
  }
  switch (state.width) {
    case StateWidth::like_parameter: return add(trained.elements, own);
    case StateWidth::fp32:
      if (row_.paged && elements >= row_.paged_minimum) return;
      return add(trained.elements, DType::fp32);
    case StateWidth::bf16: return add(trained.elements, DType::bf16);
    case StateWidth::blockwise_8bit:
    case StateWidth::blockwise_4bit:
    case StateWidth::fp8:
      if (small || embedding) return add(trained.elements, DType::fp32);
      if (!row_.paged || elements < row_.paged_minimum) add(trained.elements, DType::uint8);
      return add(r_.symbols().ceil_div(trained.elements, Size(row_.block)), DType::fp32);
  }
}

StepTemporaries OptimizerRun::temporaries() const {
  if (plan_.optimizer_impl == OptimizerImpl::foreach && row_.has_foreach) return row_.foreach;
  if (plan_.optimizer_impl == OptimizerImpl::fused && row_.has_fused) return row_.fused;
  return row_.loop;
}

bool OptimizerRun::temporaries_known() const { return temporaries() != StepTemporaries::other; }

// foreach kernels: a list of tensors, all alive until the step's end.
void OptimizerRun::temporaries_of_all(int copies) {
  const ItemId item = r_.writer().item("step.temporaries");
  std::vector<Tensor> made;
  for (int i = 0; i < copies; ++i)
    for_each([&](TrainedParameter& trained) {
      made.push_back(r_.empty(trained.parameter->value.shape(), trained.parameter->value.dtype(), "optimizer step temporary", item));
    });
  std::size_t next = 0;
  for (int i = 0; i < copies; ++i) for_each([&](TrainedParameter&) { made[next++].drop(); });
}

// A loop over the tensors: the copies of one live until the next one's are made.
void OptimizerRun::temporaries_of_each(int copies) {
  const ItemId item = r_.writer().item("step.temporaries");
  for_each([&](TrainedParameter& trained) {
    std::vector<Tensor> made;
    for (int i = 0; i < copies; ++i)
      made.push_back(r_.empty(trained.parameter->value.shape(), trained.parameter->value.dtype(), "optimizer step temporary", item));
  });
}

void OptimizerRun::step() {
  if (!created_) create_states();
  switch (temporaries()) {
    case StepTemporaries::one_parameter_each: return temporaries_of_all(1);
    case StepTemporaries::two_parameters_each: return temporaries_of_all(2);
    case StepTemporaries::one_largest: return temporaries_of_each(1);
    case StepTemporaries::two_largest: return temporaries_of_each(2);
    case StepTemporaries::three_largest: return temporaries_of_each(3);
    case StepTemporaries::adafactor:
    case StepTemporaries::none:
    case StepTemporaries::other: return;
  }
}

void OptimizerRun::drop_gradients() {
  for_each([](TrainedParameter& trained) { trained.parameter->gradient.drop(); });
}

void OptimizerRun::clip() {
  const ItemId item = r_.writer().item("step.temporaries");
  std::vector<Tensor> norms;
  for_each([&](TrainedParameter& trained) { norms.push_back(r_.empty({Size(1), Size(1)}, trained.parameter->value.dtype(), "gradient norm", item)); });
  std::size_t next = 0;
  for_each([&](TrainedParameter&) { norms[next++].drop(); });
}

}  // namespace membill
