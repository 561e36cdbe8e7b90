// What a stage's trainer adds to the model: a reference model, further tensors of a batch, and its own way to the loss.
#pragma once

#include <memory>
#include <optional>

#include "blocks/trl_losses.h"
#include "estimate/parameters.h"
#include "estimate/ppo_run.h"
#include "estimate/reference_run.h"
#include "estimate/rollout.h"
#include "estimate/teacher_run.h"

namespace membill {

// The model that the stage trains: a reward model has a score for a head, one row that is trained whole beside adapters.
[[nodiscard]] ModelSpec staged_model(const ModelSpec& model, const TrainingPlan& plan);
// The model with scores for a head, a sequence classifier.
[[nodiscard]] ModelSpec scored_model(const ModelSpec& model, std::int64_t scores = 1);
// The regime that the engine makes of the plan's: DeepSpeed and Megatron train 16-bit weights with fp32 masters in their optimizers
// where others would autocast (deepspeed 0.18 runtime/engine.py, accelerate accelerator.py _prepare_deepspeed; megatron-core 0.16
// optimizer/optimizer.py). Megatron also runs its own layers where none were named.
[[nodiscard]] TrainingPlan as_engine_runs(const TrainingPlan& plan);
// The plan that it runs: the score is saved beside adapters, classes that write attention out do so whatever is asked, and Megatron's
// checkpoints are reentrant.
[[nodiscard]] TrainingPlan staged_plan(const ModelSpec& model, const TrainingPlan& plan);

// DPO and KTO compare with a reference unless its log-probabilities were computed before; GRPO does if beta is not 0.
// TRL's activation_offloading without checkpoints: what autograd saves waits in host memory.
[[nodiscard]] bool saves_on_host(const TrainingPlan& plan);
// Whether variables of the training loop hold something of the model's until its next forward.
[[nodiscard]] bool holds_variables(const TrainingPlan& plan);
[[nodiscard]] bool has_reference(const TrainingPlan& plan);

// True for stages whose loss counts completions only: DPO, KTO, ORPO and SimPO.
[[nodiscard]] bool runs_preference_stage(const TrainingPlan& plan);

class StageRun {
 public:
  // Allocates the models that the stage has beside the policy; those that train join `job`.
  StageRun(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware,
           const Dims& dims, bool expand, JobModules& job);

  // False for stages that make their batches on the card; the Trainer then has none to fetch.
  [[nodiscard]] bool fetches_batches() const { return !rollout_ && !ppo_; }
  // Whether something comes before the forward of micro-batch `number` of a step, from 0; does it.
  [[nodiscard]] bool prepares(std::int64_t number) const {
    return rollout_ ? rollout_->is_due(number) : ppo_ && number == 0;
  }
  void prepare(Forward& f, const Architecture& architecture, JobModules& job, std::optional<DType> autocast);
  // Types of the tensors of a batch besides the token ids, one element a token each. Where rows are joined, positions are among them.
  [[nodiscard]] std::vector<DType> further_batch_tensors() const;
  // input_ids -> loss. With `outputs`, the model's logits stay there.
  [[nodiscard]] Tensor forward(Forward& f, const Architecture& architecture, JobModules& job, const Tensor& ids,
                               Tensor* outputs);

  // Bytes in host memory by item of what the stage has beside the policy.
  [[nodiscard]] std::map<std::string, std::int64_t> on_host() {
    ReferenceRun* const beside = second_model();
    return beside != nullptr ? beside->on_host() : std::map<std::string, std::int64_t>();
  }
  [[nodiscard]] std::map<std::string, std::int64_t> on_nvme() {
    ReferenceRun* const beside = second_model();
    return beside != nullptr ? beside->on_nvme() : std::map<std::string, std::int64_t>();
  }

  // What a loop holds of its micro-batch's outputs goes.
  void release_outputs() {
    if (ppo_) ppo_->release();
  }

 private:
  [[nodiscard]] Size counted(const Dims& dims) const;
  [[nodiscard]] ReferenceModel reference(JobModules& job);
  [[nodiscard]] ReferenceRun* second_model() { return teacher_ ? &teacher_->stored() : reference_model_.get(); }

  const TrainingPlan& plan_;
  std::unique_ptr<ReferenceRun> reference_model_;
  std::unique_ptr<TeacherRun> teacher_;
  std::optional<Rollout> rollout_;
  std::unique_ptr<PpoRun> ppo_;
  bool reference_ = false;
};

}  // namespace membill
