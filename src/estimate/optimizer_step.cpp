#include "estimate/optimizer_step.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "estimate/gradient_clipping.h"
#include "estimate/optimizer_temporaries.h"
#include "estimate/parameter_walk.h"

namespace membill {
namespace {

const OptimizerRow& row_of(const TrainingPlan& plan) {
  if (const OptimizerRow* row = find_optimizer(plan.optimizer)) return *row;
  throw std::logic_error("no optimizer " + plan.optimizer);
}

bool everyone(const TrainedParameter&) { return true; }

}  // namespace

OptimizerRun::OptimizerRun(Recorder& recorder, const TrainingPlan& plan, std::vector<TrainedParameter>& trained)
    : r_(recorder),
      plan_(plan),
      row_(row_of(plan)),
      trained_(trained),
      states_(recorder, plan, row_),
      has_states_(trained.size(), false),
      loop_(new_loop()),
      in_backward_(plan.optimizer_in_backward || row_.gradients == GradientLife::one_tensor) {}

void OptimizerRun::construct(bool states, const std::vector<TrainedParameter>& idle) {
  for (TrainedParameter& trained : trained_)
    if (plan_.gradient_dtype && plan_.engine != Engine::megatron)
      trained.parameter->gradient_dtype = plan_.gradient_dtype;
  if (regime(plan_.precision).master || row_.on_host) make_masters();
  for (const TrainedParameter& trained : trained_) types_.push_back(states_.own_type(trained));
  if (row_.at_construction && plan_.engine == Engine::torch)
    for (const TrainedParameter& one : idle) states_.create(one);
  if (states || row_.at_construction) create_states(everyone);
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

void OptimizerRun::create_states(const std::function<bool(const TrainedParameter& trained)>& belongs) {
  walk_parameters(r_.writer(), trained_, [&](TrainedParameter& trained, std::size_t i) {
    if (has_states_[i] || !belongs(trained)) return;
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
  if (const auto loop = new_loop()) return step_in_loop(*loop);
  create_states(everyone);
  if (plan_.engine != Engine::megatron || plan_.parallel.ep == 1)
    return OptimizerTemporaries(r_, trained_, types_, everyone).run(temporaries());
  // megatron-core 0.16 optimizer/optimizer.py ChainedOptimizer: that of the experts comes after the other.
  for (const bool experts : {false, true}) {
    const auto belongs = [&](const TrainedParameter& one) { return (one.role == TensorRole::expert) == experts; };
    OptimizerTemporaries(r_, trained_, types_, belongs).run(temporaries());
  }
}

void OptimizerRun::step_in_loop(ParameterStep& loop) {
  const auto pass = [&](auto belongs) {
    if (loop.makes_states_first()) create_states(belongs);
    walk_parameters(r_.writer(), trained_, [&](TrainedParameter& one, std::size_t i) {
      if (!one.parameter->gradient.defined() || !belongs(one)) return;
      loop.update(one, has_states_[i]);
      has_states_[i] = true;
    });
  };
  if (!loop.has_groups()) return pass(everyone);
  pass([](const TrainedParameter& one) { return !is_hidden_matrix(one); });
  loop.end_group();
  pass([](const TrainedParameter& one) { return is_hidden_matrix(one); });
}

// A hook after the parameter's gradient is complete: update, then let go of the gradient. LOMO's comes before: it updates those whose
// gradient is there already.
void OptimizerRun::update_in_backward(Parameter& parameter) {
  const bool waits = loop_ != nullptr && loop_->waits_for_next();
  if (waits) update_pending();
  pending_ = &parameter;
  if (!waits) update_pending();
}

void OptimizerRun::update_pending() {
  Parameter* const waiting = std::exchange(pending_, nullptr);
  const auto at = std::find_if(trained_.begin(), trained_.end(),
                               [&](const TrainedParameter& trained) { return trained.parameter == waiting; });
  if (waiting == nullptr || at == trained_.end()) return;
  step_one(static_cast<std::size_t>(at - trained_.begin()));
  waiting->gradient.drop();
}

void OptimizerRun::after_backward() { update_pending(); }

void OptimizerRun::step_one(std::size_t index) {
  if (const auto loop = new_loop()) {
    if (!trained_[index].parameter->gradient.defined()) return;
    loop->update(trained_[index], has_states_[index]);
    has_states_[index] = true;
    return;
  }
  if (!has_states_[index]) states_.create(trained_[index]);
  has_states_[index] = true;
  OptimizerTemporaries(r_, trained_, types_, everyone).run_for(index, temporaries());
}

void OptimizerRun::drop_gradients() {
  walk_parameters(r_.writer(), trained_,
                  [](TrainedParameter& trained, std::size_t) { trained.parameter->gradient.drop(); });
}

void OptimizerRun::clip() {
  if (!in_backward_) clip_gradients(r_, trained_);
}

}  // namespace membill
