// The buffers that NCCL or HCCL keeps for each process group of a rank, beside the caching allocator's memory.
#pragma once

#include <string_view>
#include <vector>

#include "membill/hardware.h"
#include "membill/report.h"
#include "membill/training_plan.h"

namespace membill {

struct Communicator {
  std::string_view id;  // of its line in the bill
  std::int64_t ranks = 0;
  Range bytes;
};

// One for each group of two ranks or more in which the plan's engine communicates: all ranks; then, as the layout has them, the tensor-,
// data-, context-, pipeline- and expert-parallel ones. Buffers are taken at a group's first collective and grow with channels and
// peers, not with messages. The first also loads the library's kernels. What was measured on the user's own machine
// (GpuSpec::communicator) stands for all of them. `tied`: the model's head is its embedding, whose copies on the first and the last
// pipeline stage share their gradient. Of hardware.rank, else the first.
[[nodiscard]] std::vector<Communicator> communicators(const TrainingPlan& plan, const Hardware& hardware,
                                                      bool tied = false);

// Their sum.
[[nodiscard]] Range communicator_bytes(const TrainingPlan& plan, const Hardware& hardware, bool tied = false);

}  // namespace membill
