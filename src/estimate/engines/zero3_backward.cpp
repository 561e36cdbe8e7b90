#include "estimate/engines/zero3_backward.h"

#include <algorithm>

#include "base/release.h"
#include "blocks/generations.h"

namespace membill {
namespace {

bool attributes_recomputation(const TrainingPlan& plan) {
  const auto release = plan.software.find("deepspeed");
  return release == plan.software.end() || !is_before(release->second, 0, 19, 3);
}

}  // namespace

Zero3Backward::Zero3Backward(const TrainingPlan& plan, Zero3Coordinator& coordinator)
    : coordinator_(coordinator),
      attributes_(attributes_recomputation(plan)),
      checkpoints_(plan.checkpointing.mode != Checkpointing::none),
      reentrant_(plan.checkpointing.reentrant),
      hooks_inside_(generations(plan).checkpoints_around_wrappers) {}

void Zero3Backward::enter(const Group& module) {
  active_.push_back(module);
  coordinator_.fetch(module);
}

// ds_grads_remaining: a module counts the gradients that are to come for its inputs. Running the model once more without gradients sets
// that to none, and then they never all come; what a checkpoint runs again counts anew.
void Zero3Backward::leave(const Group& module, bool in_layer) {
  if (!runs_without_gradients_ || (checkpoints_ && in_layer)) finish(module);
}

void Zero3Backward::finish(const Group& module) {
  const auto at = std::find(active_.begin(), active_.end(), module);
  coordinator_.release(module);
  const Partitioned* const left = module.front();
  if (at != active_.end()) active_.erase(at);  // `module` may have been it
  release_attributed(left);
}

// The first layer's input was made to need a gradient: it counts without gradients, too.
void Zero3Backward::leave_layer(const Layer& layer) {
  if (!runs_without_gradients_ || layer == layers_.begin()->first) release_attributed(module_of(layer));
}

Zero3Coordinator::Owner Zero3Backward::module_of(const Layer& layer) {
  return hooks_inside_ ? nullptr : &layers_[layer];
}

// The module that was entered last: a reentrant checkpoint runs before its layer's own modules are, and where the layer's hooks are
// inside of it, that is one that is never left.
Zero3Coordinator::Owner Zero3Backward::owner() {
  if (reentrant_) return module_of(layer_);
  return active_.empty() ? nullptr : active_.back().front();
}

void Zero3Backward::fetched(const Group& module, bool trains) {
  if (runs_ && attributes_ && !trains) coordinator_.attribute(module, owner());
}

bool Zero3Backward::is_active(const Group& module) const {
  return std::find(active_.begin(), active_.end(), module) != active_.end();
}

void Zero3Backward::release_attributed(Zero3Coordinator::Owner owner) {
  for (Partitioned* p : coordinator_.take_attributed(owner))
    if (!is_active({p})) coordinator_.release_attributed(*p);
}

void Zero3Backward::end() {
  runs_ = false;
  while (!active_.empty()) finish(active_.back());
  for (const auto& [layer, address] : layers_) release_attributed(&address);
  release_attributed(nullptr);
}

}  // namespace membill
