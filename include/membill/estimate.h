// The verbs of membill's core.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "membill/hardware.h"
#include "membill/model_spec.h"
#include "membill/problem.h"
#include "membill/report.h"
#include "membill/training_plan.h"

namespace membill {

struct EstimateOptions {
  bool replay = true;          // replay the allocator: reserved, and the verdict on a card
  bool smallest_card = false;  // bisect the least capacity on which the replay survives
  bool timeline = true;        // fold the timeline that pictures draw
};

// What is wrong with the three inputs together (an adapter target that no module has, degrees that do not divide, a stage that
// the implementation cannot run). Keys are those of the job file. Empty: estimate() will answer.
[[nodiscard]] std::vector<Problem> validate(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware);

// Whether activations of the model are billed: Transformers' implementation of its type has a block program. Of a model that has none
// the parameters, gradients and states are billed, and totals are "at least".
[[nodiscard]] bool models_activations(const ModelSpec& model);

// The bill. REQUIRES: validate() found nothing. Throws OverflowError when a count leaves 64 bits.
[[nodiscard]] Report estimate(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware,
                              const EstimateOptions& options = {});

// The problems among those of validate() that another batch or length can make or mend. Quick.
[[nodiscard]] std::vector<Problem> validate_sizes(const ModelSpec& model, const TrainingPlan& plan,
                                                  const Hardware& hardware);

// What a row of a sweep says of one case: figures of estimate()'s Report, without its items.
struct CaseFigures {
  std::int64_t requested = 0;  // totals.requested
  std::string peak_moment;
  bool at_least = false;
  // From the replay; none without it.
  std::optional<std::int64_t> allocated, reserved, device;  // likely
  std::optional<std::int64_t> headroom;
  Answer answer = Answer::none;
};

// One model, plan and machine at many batches and lengths. The job is simulated once for all cases that run the same program; each case
// then costs the evaluation of a few polynomials, or a replay. The figures are those that estimate() gives.
// Not for use by several threads at once.
class JobFamily {
 public:
  // `plan`'s own batch and seq do not matter.
  JobFamily(const ModelSpec& model, const TrainingPlan& plan, Hardware hardware);
  JobFamily(JobFamily&&) noexcept;
  JobFamily& operator=(JobFamily&&) noexcept;
  ~JobFamily();

  // REQUIRES: validate() finds nothing for the case. Throws OverflowError.
  [[nodiscard]] CaseFigures fold(std::int64_t batch, std::int64_t seq);
  [[nodiscard]] CaseFigures replay(std::int64_t batch, std::int64_t seq);

 private:
  class Shape;
  class Rank;
  struct Heaviest {
    Rank* rank = nullptr;
    CaseFigures figures;
  };
  [[nodiscard]] Heaviest heaviest(std::int64_t batch, std::int64_t seq);
  std::unique_ptr<const ModelSpec> model_;    // as it is simulated
  std::vector<std::unique_ptr<Rank>> ranks_;  // one of each kind
};

}  // namespace membill
