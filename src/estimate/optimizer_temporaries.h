// What an optimizer's step makes for a moment, tensor by tensor, written like the optimizers' own loops.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "estimate/parameters.h"
#include "membill/catalog.h"

namespace membill {

class OptimizerTemporaries {
 public:
  using Belongs = std::function<bool(const TrainedParameter& trained)>;

  // `types[i]`: type of the temporaries of trained[i]. `belongs`: what this optimizer, where there are several, updates.
  OptimizerTemporaries(Recorder& recorder, std::vector<TrainedParameter>& trained, const std::vector<DType>& types,
                       Belongs belongs)
      : r_(recorder),
        trained_(trained),
        types_(types),
        belongs_(std::move(belongs)),
        item_(recorder.writer().item("step.temporaries")) {}

  // REQUIRES: no loop of its own (parameter_step.h), which makes its states on the way.
  void run(StepTemporaries kind);
  // The temporaries of one parameter's step alone (an optimizer that runs in the backward).
  void run_for(std::size_t index, StepTemporaries kind);

 private:
  Tensor make(std::size_t index);
  void lists(int count);
  void list_of_group(DType type, std::vector<Tensor>& list);
  void drop_list(std::vector<Tensor>& list);

  Recorder& r_;
  std::vector<TrainedParameter>& trained_;
  const std::vector<DType>& types_;
  Belongs belongs_;
  ItemId item_;
};

}  // namespace membill
