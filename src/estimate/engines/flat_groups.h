// The flat groups of trained tensors that ZeRO 1 and 2 cut into partitions, one a rank (deepspeed 0.19 runtime/zero/stage_1_and_2.py).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "estimate/parameters.h"

namespace membill {

// A tensor's place in its group.
struct Slice {
  std::size_t group = 0;
  std::int64_t begin = 0, elements = 0;
  std::int64_t first_rank = 0, last_rank = 0;  // whose partitions it overlaps
  std::int64_t own_begin = 0, own_end = 0;     // the part in this rank's partition; none: begin >= end
  [[nodiscard]] bool is_mine() const { return own_begin < own_end; }
  [[nodiscard]] std::int64_t own() const { return own_end - own_begin; }
};

struct FlatGroup {
  std::int64_t part = 0;  // elements of one rank's partition
};

class FlatGroups {
 public:
  FlatGroups(const TrainingPlan& plan, std::int64_t ranks, std::int64_t rank)
      : plan_(plan), ranks_(ranks), rank_(rank) {}

  // Every trained tensor in order; the Trainer's parameters without weight decay (norms, vectors) are a group of their own. A group's
  // size is aligned to twice the ranks. REQUIRES: every layer is simulated.
  void lay_out(Recorder& recorder, const std::vector<TrainedParameter>& trained);

  [[nodiscard]] std::int64_t ranks() const { return ranks_; }
  [[nodiscard]] const std::vector<FlatGroup>& all() const { return groups_; }
  [[nodiscard]] const std::vector<Parameter*>& parameters() const { return parameters_; }
  // nullptr: not trained.
  [[nodiscard]] const Slice* find(const Parameter& parameter) const;
  [[nodiscard]] std::int64_t largest_own_slice() const { return largest_own_slice_; }
  [[nodiscard]] std::int64_t largest_tensor() const { return largest_tensor_; }
  // Of all tensors, whole, that overlap this rank's partitions.
  [[nodiscard]] std::int64_t own_elements() const { return own_elements_; }

 private:
  void add_group(const std::vector<Parameter*>& members);

  const TrainingPlan& plan_;
  std::int64_t ranks_, rank_;
  std::vector<FlatGroup> groups_;
  std::vector<Parameter*> parameters_;
  std::map<const Parameter*, Slice> slices_;
  std::int64_t largest_own_slice_ = 0, largest_tensor_ = 0, own_elements_ = 0;
};

// Weights and biases of torch.nn.Linear modules, adapters' among them.
[[nodiscard]] std::set<const Parameter*> parameters_of_linears(const JobModules& job);

// Elements of the reduce bucket: 5e8 unless the plan says otherwise; auto is the square of the hidden size, as Hugging Face fills it in.
[[nodiscard]] std::int64_t reduce_bucket_elements(const TrainingPlan& plan, std::int64_t hidden);

}  // namespace membill
