// What ZeRO-3 keeps in host memory and in files on NVMe (deepspeed 0.19 runtime/zero/stage3.py, partition_parameters.py,
// runtime/swap_tensor).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "membill/training_plan.h"
#include "membill/units.h"

namespace membill {

// A parameter's partition on this rank.
struct StoredPartition {
  std::int64_t elements = 0;
  DType type = DType::bf16;
  bool trains = false;
  int copies = 1;  // a tied head's is made and locked before it is tied
};

struct StoredModel {
  std::vector<StoredPartition> partitions;
  std::vector<std::int64_t> sub_groups;  // elements of this rank's part of each
  std::int64_t ranks = 1;
  DType type = DType::bf16, gradient = DType::bf16;
};

// Bytes by item of the bill.
struct StoredBytes {
  std::map<std::string, std::int64_t> host, nvme;
};

[[nodiscard]] StoredBytes zero3_stored(const TrainingPlan& plan, const StoredModel& model);

// Whether DeepSpeed writes so many bytes to a file of their own; less stays where it is.
[[nodiscard]] bool is_swappable(std::int64_t bytes);

}  // namespace membill
