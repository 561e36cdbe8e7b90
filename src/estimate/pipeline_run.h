// One step of a pipeline stage: several micro-batches' graphs live at once. Layers are written out one by one.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "blocks/architecture.h"
#include "blocks/causal_lm.h"
#include "estimate/pipeline_order.h"

namespace membill {

class PipelineRun {
 public:
  // What an attribute of a chunk's model holds from its last forward of a step to the first of the next.
  struct HeldInput {
    Tensor input, gradient;
  };
  using HeldInputs = std::map<std::int64_t, HeldInput>;  // by chunk

  // `f`, `modules` and `held` outlive the run.
  PipelineRun(Forward& f, const Architecture& architecture, ModelModules& modules, const PipelineStage& place,
              HeldInputs& held)
      : f_(f), architecture_(architecture), modules_(modules), place_(place), held_(held) {}

  void step();

 private:
  // What one micro-batch leaves in a chunk between its forward and its backward.
  struct Pass {
    Tensor ids, input, output, output_gradient;
    Parameter leaf;  // the gradient of the input goes here
  };

  void forward(const PipelineTurn& turn);
  void backward(const PipelineTurn& turn);
  [[nodiscard]] Tensor run_chunk(Pass& pass, std::int64_t chunk);
  [[nodiscard]] Tensor received(const char* label);
  void receive_gradient(const PipelineTurn& turn);
  [[nodiscard]] Tensor accumulated(Tensor gradient);
  void send(const PipelineTurn& turn);
  void drop_finished() {
    finished_input_.drop();
    finished_gradient_.drop();
  }
  [[nodiscard]] Pass& pass_of(const PipelineTurn& turn) { return *passes_.at({turn.chunk, turn.micro_batch}); }
  // Forward and backward exchange their tensors together, once both are done.
  [[nodiscard]] bool is_interleaved() const { return place_.chunks > 1; }
  [[nodiscard]] bool is_first(std::int64_t chunk) const { return place_.stage == 0 && chunk == 0; }
  [[nodiscard]] bool is_last(std::int64_t chunk) const {
    return place_.stage == place_.stages - 1 && chunk == place_.chunks - 1;
  }

  Forward& f_;
  const Architecture& architecture_;
  ModelModules& modules_;
  PipelineStage place_;
  HeldInputs& held_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::unique_ptr<Pass>> passes_;  // by chunk and micro-batch
  // Variables of the schedule: the last gradients, and the input that the graph of the last output holds.
  Tensor output_gradient_, input_gradient_, finished_input_, finished_gradient_;
};

// The layers of the stack `section`, with whatever is recomputed around them: plan.checkpointing.
[[nodiscard]] Tensor run_written_out(Forward& f, const Architecture& architecture, ModelModules& modules,
                                     std::size_t section, Tensor hidden);

}  // namespace membill
