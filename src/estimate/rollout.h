// What a stage does before it trains on a batch of its own making: completions are written and scored.
#pragma once

#include <optional>
#include <vector>

#include "blocks/trl_forward.h"
#include "estimate/parameters.h"

namespace membill {

// Whether the stage trains on what its policy generates.
[[nodiscard]] bool generates(Stage stage);

// Lengths of a row, and how many rows one generation makes.
struct RolloutSizes {
  Size prompt, completion;   // tokens; together seq
  std::int64_t batches = 1;  // micro-batches that one generation feeds (steps_per_generation)
  std::int64_t every = 1;    // micro-batches from one generation to the next
};
[[nodiscard]] RolloutSizes rollout_sizes(SymbolTable& symbols, const TrainingPlan& plan, const Dims& dims);

class Rollout {
 public:
  // `woken`: bytes that a vLLM takes on this card for the time of a generation alone.
  Rollout(Recorder& recorder, const TrainingPlan& plan, const Dims& dims, std::int64_t woken);

  [[nodiscard]] const RolloutSizes& sizes() const { return sizes_; }
  // True when the micro-batch, counted from 0 within a step, begins with a generation: the first, and where several generations
  // feed a step, those that find its gradients.
  [[nodiscard]] bool is_due(std::int64_t micro_batch) const;
  // Moments "generate" and "score". `reference` is null where the stage has none.
  void run(Forward& f, const Architecture& architecture, JobModules& job, const ReferenceModel* reference,
           std::optional<DType> autocast);

 private:
  void generate(Forward& f, const Architecture& architecture, JobModules& job, const Size& rows,
                std::optional<DType> autocast);
  [[nodiscard]] bool drifts() const;  // whether the model's log-probabilities of now will be old ones
  void generate_elsewhere(Forward& f, JobModules& job);
  void hand_weights_over(Forward& f, JobModules& job);
  void merge(const Modules& modules, int unit);
  void score(Forward& f, const Architecture& architecture, JobModules& job, const ReferenceModel* reference);

  Recorder& r_;
  const TrainingPlan& plan_;
  const Dims& dims_;
  RolloutSizes sizes_;
  std::int64_t woken_;
  std::vector<Tensor> buffered_;  // what the next micro-batches train on
};

}  // namespace membill
