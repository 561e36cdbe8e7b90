// What a stage's trainer adds to the model: a reference model, further tensors of a batch, and its own way to the loss.
#pragma once

#include <memory>
#include <optional>

#include "blocks/trl_losses.h"
#include "estimate/parameters.h"

namespace membill {

// The model that the stage trains: a reward model has a score for a head, one row that is trained whole beside adapters.
[[nodiscard]] ModelSpec staged_model(const ModelSpec& model, const TrainingPlan& plan);
// The regime that the engine makes of the plan's: DeepSpeed and Megatron train 16-bit weights with fp32 masters in their optimizers
// where others would autocast (deepspeed 0.18 runtime/engine.py, accelerate accelerator.py _prepare_deepspeed; megatron-core 0.16
// optimizer/optimizer.py). Megatron also runs its own layers where none were named.
[[nodiscard]] TrainingPlan as_engine_runs(const TrainingPlan& plan);
// The plan that it runs: the score is saved beside adapters, classes that write attention out do so whatever is asked, and Megatron's
// checkpoints are reentrant.
[[nodiscard]] TrainingPlan staged_plan(const ModelSpec& model, const TrainingPlan& plan);

// True for stages whose loss counts completions only: DPO, KTO, ORPO and SimPO.
[[nodiscard]] bool runs_preference_stage(const TrainingPlan& plan);

class StageRun {
 public:
  // Allocates the reference model where the stage has one of its own.
  StageRun(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan, const Dims& dims, bool expand);

  // Types of the tensors of a batch besides the token ids, one element a token each. Where rows are joined, positions are among them.
  [[nodiscard]] std::vector<DType> further_batch_tensors() const;
  // input_ids -> loss. With `outputs`, the model's logits stay there.
  [[nodiscard]] Tensor forward(Forward& f, const Architecture& architecture, JobModules& job, const Tensor& ids,
                               Tensor* outputs);

 private:
  [[nodiscard]] Size counted() const;

  const TrainingPlan& plan_;
  const Dims& dims_;
  std::optional<JobModules> reference_model_;
  bool reference_ = false;
};

}  // namespace membill
