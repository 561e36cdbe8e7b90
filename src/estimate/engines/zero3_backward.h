// Modules of ZeRO-3 in the backward pass: which have been entered and not left, and what checkpoints that run again leave with one of
// them (deepspeed 0.19 runtime/zero/parameter_offload.py, partitioned_param_coordinator.py).
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "estimate/engines/zero3_coordinator.h"

namespace membill {

class Zero3Backward {
 public:
  using Group = Zero3Coordinator::Group;
  using Layer = std::pair<int, int>;  // unit, layer

  Zero3Backward(const TrainingPlan& plan, Zero3Coordinator& coordinator);

  // A forward of the model begins; one of its layers runs in it.
  void begin_forward(bool with_gradients) { runs_without_gradients_ = !with_gradients; }
  void see(const Layer& layer) { layers_[layer]; }

  void begin() { runs_ = true; }
  void enter_layer(const Layer& layer) { layer_ = layer; }
  void leave_layer(const Layer& layer);
  void enter(const Group& module);
  // The gradients of its inputs are there. `in_layer`: of a layer, which a checkpoint runs again where there is one.
  void leave(const Group& module, bool in_layer);
  // A module's forward has fetched a weight; in a checkpoint that runs again, one that does not train gets an owner.
  void fetched(const Group& module, bool trains);
  [[nodiscard]] bool is_active(const Group& module) const;
  // What is left is released.
  void end();

 private:
  void finish(const Group& module);
  [[nodiscard]] Zero3Coordinator::Owner module_of(const Layer& layer);
  [[nodiscard]] Zero3Coordinator::Owner owner();
  void release_attributed(Zero3Coordinator::Owner owner);

  Zero3Coordinator& coordinator_;
  bool attributes_, checkpoints_, reentrant_, hooks_inside_;
  bool runs_ = false, runs_without_gradients_ = false;
  Layer layer_;
  std::vector<Group> active_;
  std::map<Layer, char> layers_;  // the addresses stand for the layers' modules
};

}  // namespace membill
