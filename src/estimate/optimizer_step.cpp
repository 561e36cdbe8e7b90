#include "estimate/optimizer_step.h"

#include <algorithm>
#include <stdexcept>

#include "estimate/adafactor_step.h"
#include "estimate/gradient_clipping.h"
#include "estimate/optimizer_temporaries.h"
#include "estimate/parameter_walk.h"

namespace membill {
namespace {

const OptimizerRow& row_of(const TrainingPlan& plan) {
  if (const OptimizerRow* row = find_optimizer(plan.optimizer)) return *row;
  throw std::logic_error("no optimizer " + plan.optimizer);
}

}  // namespace

OptimizerRun::OptimizerRun(Recorder& recorder, const TrainingPlan& plan, std::vector<TrainedParameter>& trained)
    : r_(recorder),
      plan_(plan),
      row_(row_of(plan)),
      trained_(trained),
      states_(recorder, plan, row_),
      has_states_(trained.size(), false),
      in_backward_(plan.optimizer_in_backward || row_.gradients == GradientLife::one_tensor) {}

void OptimizerRun::construct(bool states) {
  for (TrainedParameter& trained : trained_)
    if (plan_.gradient_dtype && plan_.engine != Engine::megatron)
      trained.parameter->gradient_dtype = plan_.gradient_dtype;
  if (regime(plan_.precision).master || row_.on_host) make_masters();
  for (const TrainedParameter& trained : trained_) types_.push_back(states_.own_type(trained));
  if (states || row_.at_construction) create_states();
  if (in_backward_) r_.set_after_accumulate([this](Parameter& parameter) { update_in_backward(parameter); });
}

void OptimizerRun::make_masters() {
  const ItemId item = r_.writer().item("weights.master");
  walk_parameters(r_.writer(), trained_, [&](TrainedParameter& trained, std::size_t) {
    if (trained.on_host) return;  // the engine's own master
    if (row_.on_host) {
      trained.master_on_host = true;
      states_.add("weights.master", trained.elements, DType::fp32, trained);
    } else if (trained.parameter->value.dtype() != DType::fp32) {
      trained.master = r_.empty(trained.parameter->value.shape(), DType::fp32, "fp32 master", item);
    }
  });
}

void OptimizerRun::create_states() {
  walk_parameters(r_.writer(), trained_, [&](TrainedParameter& trained, std::size_t i) {
    if (has_states_[i]) return;
    has_states_[i] = true;
    states_.create(trained);
  });
}

StepTemporaries OptimizerRun::temporaries() const {
  if (plan_.optimizer_impl == OptimizerImpl::foreach && row_.has_foreach) return row_.foreach;
  if (plan_.optimizer_impl == OptimizerImpl::fused && row_.has_fused) return row_.fused;
  return row_.loop;
}

void OptimizerRun::step() {
  if (in_backward_) return;
  if (temporaries() == StepTemporaries::adafactor) return step_adafactor(r_, trained_, states_, has_states_);
  create_states();
  OptimizerTemporaries(r_, trained_, types_).run(temporaries());
}

// A hook after the parameter's gradient is complete: update, then let go of the gradient.
void OptimizerRun::update_in_backward(Parameter& parameter) {
  const auto at = std::find_if(trained_.begin(), trained_.end(),
                               [&](const TrainedParameter& trained) { return trained.parameter == &parameter; });
  if (at == trained_.end()) return;
  step_one(static_cast<std::size_t>(at - trained_.begin()));
  parameter.gradient.drop();
}

void OptimizerRun::step_one(std::size_t index) {
  if (temporaries() == StepTemporaries::adafactor) {
    std::vector<TrainedParameter> one{trained_[index]};
    std::vector<bool> has_states{has_states_[index]};
    step_adafactor(r_, one, states_, has_states);
    has_states_[index] = has_states.front();
    return;
  }
  if (!has_states_[index]) states_.create(trained_[index]);
  has_states_[index] = true;
  OptimizerTemporaries(r_, trained_, types_).run_for(index, temporaries());
}

void OptimizerRun::drop_gradients() {
  walk_parameters(r_.writer(), trained_,
                  [](TrainedParameter& trained, std::size_t) { trained.parameter->gradient.drop(); });
}

void OptimizerRun::clip() {
  if (!in_backward_) clip_gradients(r_, trained_);
}

}  // namespace membill
