#include "estimate/optimizer_temporaries.h"

#include <algorithm>

#include "estimate/parameter_walk.h"

namespace membill {

Tensor OptimizerTemporaries::make(std::size_t index) {
  if (trained_[index].on_host || !belongs_(trained_[index])) return {};
  return r_.empty(trained_[index].parameter->value.shape(), types_[index], "optimizer step temporary", item_);
}

// torch/optim *_single_tensor_*: a local variable keeps its tensor until the next turn has made a new one.
void OptimizerTemporaries::run(StepTemporaries kind) {
  Tensor local;
  switch (kind) {
    case StepTemporaries::one_list: return lists(1);
    case StepTemporaries::two_lists: return lists(2);
    case StepTemporaries::one_kept:
      return walk_parameters(r_.writer(), trained_, [&](TrainedParameter&, std::size_t i) { local = make(i); });
    case StepTemporaries::two_one_kept:
      return walk_parameters(r_.writer(), trained_, [&](TrainedParameter&, std::size_t i) {
        Tensor root = make(i);
        Tensor quotient = make(i);
        root.drop();
        local = std::move(quotient);
      });
    case StepTemporaries::two:
      return walk_parameters(r_.writer(), trained_, [&](TrainedParameter&, std::size_t i) {
        Tensor copy = make(i);
        const Tensor update = make(i);
        copy.drop();
      });
    default: return;  // none, not known, or a loop of its own
  }
}

void OptimizerTemporaries::run_for(std::size_t index, StepTemporaries kind) {
  const bool two =
      kind == StepTemporaries::two_lists || kind == StepTemporaries::two_one_kept || kind == StepTemporaries::two;
  const bool one = kind == StepTemporaries::one_list || kind == StepTemporaries::one_kept;
  if (!one && !two) return;
  const Tensor first = make(index);
  const Tensor second = two ? make(index) : Tensor();
}

// foreach kernels: tensors are grouped by type; a group's lists live until the next group's replace them.
void OptimizerTemporaries::lists(int count) {
  std::vector<DType> groups;
  for (const DType type : types_)
    if (std::find(groups.begin(), groups.end(), type) == groups.end()) groups.push_back(type);
  std::vector<std::vector<Tensor>> kept(static_cast<std::size_t>(count));
  for (const DType type : groups) {
    for (std::vector<Tensor>& list : kept) {
      std::vector<Tensor> made(trained_.size());
      list_of_group(type, made);
      drop_list(list);
      list = std::move(made);
    }
  }
  for (std::vector<Tensor>& list : kept) drop_list(list);
}

void OptimizerTemporaries::list_of_group(DType type, std::vector<Tensor>& list) {
  walk_parameters(r_.writer(), trained_, [&](TrainedParameter&, std::size_t i) {
    if (types_[i] == type) list[i] = make(i);
  });
}

void OptimizerTemporaries::drop_list(std::vector<Tensor>& list) {
  if (list.empty()) return;
  walk_parameters_backwards(r_.writer(), trained_, [&](TrainedParameter&, std::size_t i) { list[i].drop(); });
}

}  // namespace membill
