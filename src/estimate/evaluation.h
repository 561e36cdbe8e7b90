// The evaluation between training steps.
#pragma once

#include <optional>

#include "estimate/stage_run.h"

namespace membill {

class Evaluation {
 public:
  // `like`: a forward of the training step.
  Evaluation(const Forward& like, const TrainingPlan& plan, std::int64_t processes);

  // Moment "evaluation": the forward of a batch with its loss, in evaluation mode and without gradients unless the plan says so. Where
  // metrics need the logits, each batch's are joined to those before. Of many batches the first two and the last two are written:
  // those between differ in how many logits are kept. Source: transformers 5.24 trainer.py evaluation_loop, prediction_step.
  void run(StageRun& stage, const Architecture& architecture, JobModules& job, std::optional<DType> autocast);

 private:
  void batch(StageRun& stage, const Architecture& architecture, JobModules& job, std::optional<DType> autocast);
  [[nodiscard]] Tensor gathered(Tensor logits);
  void join(std::int64_t number);
  void set_samples(std::int64_t samples);
  [[nodiscard]] std::int64_t batches() const;
  [[nodiscard]] std::int64_t samples_of(std::int64_t number) const;
  [[nodiscard]] Size rows_before(std::int64_t number) const;

  std::int64_t processes_;
  Recorder& r_;
  TrainingPlan plan_;
  Dims dims_;
  Forward forward_;
  ItemId item_;
  Tensor logits_, kept_;  // of the last batch; of all so far
};

}  // namespace membill
