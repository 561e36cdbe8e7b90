// The largest batch, the fewest cards: one number of the job, so that it fits; proven by estimating it and the next.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "membill/estimate.h"

namespace membill {

enum class SolveTarget : std::uint8_t { batch, seq, rank, layers, accumulate, gpus, nodes, zero };

// A row for each target: how the command line spells it and where the search ends.
struct SolveTargetRow {
  SolveTarget target = SolveTarget::batch;
  std::string_view name;
  bool maximum = true;     // else the least value is sought
  std::int64_t least = 1;  // of the search
  std::int64_t most = 1;
};
[[nodiscard]] const std::vector<SolveTargetRow>& solve_targets();

// One value that was tried, with the whole estimate, the allocator's replay on the card included.
struct SolveTrial {
  std::int64_t value = 0;
  std::optional<Report> report;  // none: the job is refused with that value
  std::string problem;           // why, one line
  bool fits = false;
};

struct Solution {
  SolveTargetRow target;
  std::optional<SolveTrial> answer;  // none: no value fits
  std::optional<SolveTrial>
      next;  // the value beside the answer (or the first of the search) that fails; none: the search ended
};

struct SolveOptions {
  bool strict = false;  // a tight job does not count as fitting
};

// REQUIRES: the machine has a card of known size. Survival need not be monotone to the last unit; what is promised is that `answer` fits
// and `next` does not. Throws InputError when the job is refused whatever the value (no adapters for rank, activations unknown, layers of
// several kinds).
[[nodiscard]] Solution solve(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware,
                             const SolveTargetRow& target, const SolveOptions& options = {});

}  // namespace membill
