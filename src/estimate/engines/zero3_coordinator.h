// Which parameters of ZeRO-3 are whole at a time (deepspeed 0.19 runtime/zero/partitioned_param_coordinator.py): the first pass records
// the order in which modules run and gathers each for itself; later ones prefetch along that order and keep what is used again soon.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "membill/model_spec.h"
#include "program/recorder.h"

namespace membill {

// A partitioned parameter.
struct Partitioned {
  std::int64_t number = 0;  // in the order of the model
  std::int64_t elements = 0;
  std::int64_t part = 0;  // elements of one rank's partition
  DType type = DType::bf16;
  ItemId item = 0;
  TensorRole role = TensorRole::other;
  bool opens_mlp = false;        // of the first linear of its MLP: an activation follows
  bool persists = false;         // stays whole once it is
  bool is_vector = false;        // a norm's weight or a bias
  bool on_host = false;          // its partition waits in host memory
  std::int64_t second_part = 0;  // elements of the rank's part of a secondary partition (hpZ); 0: there is none
  Tensor whole, second;
};

// Limits in elements, as the plan's keys name them.
struct GatherLimits {
  std::int64_t ranks = 1;
  std::int64_t prefetch = 0, live = 0, reuse = 0;
};

// CUDA streams of stage 3 (stage3.py: the all-gather stream, the reduce-and-partition stream), whose memory the allocator keeps apart.
inline constexpr int kGatherStream = 1, kReduceStream = 2;

class Zero3Coordinator {
 public:
  Zero3Coordinator(Recorder& recorder, GatherLimits limits)
      : r_(recorder), limits_(limits), flat_item_(recorder.writer().item("gathered.flat")) {}

  using Group = std::vector<Partitioned*>;  // parameters of one module, in order

  // A module is about to run, forward or backward. One without parameters of its own counts, too: it may prefetch.
  void fetch(const Group& module);
  // It has run.
  void release(const Group& module);
  // The tensor is partitioned again; with hpZ its part of a node's secondary copy stays until the step.
  void partition(Partitioned& parameter);
  // Forward and backward of a micro-batch are over.
  void end_pass();

 private:
  // One collective: its flat result lives until the last of its parameters has been waited for.
  struct Gather {
    Tensor flat;
    Group members;
    bool done = false;
  };
  struct Use {
    Partitioned* parameter;
    std::int64_t step;
  };

  void gather(const Group& parameters);
  void wait(Partitioned& parameter);
  void prefetch(const Group& fetched);
  [[nodiscard]] bool is_absent(const Partitioned& p) const { return !p.whole.defined() && in_flight_.count(&p) == 0; }
  [[nodiscard]] bool is_used_soon(const Partitioned& parameter) const;
  [[nodiscard]] std::int64_t last_fetched_for(const Partitioned& parameter) const;

  Recorder& r_;
  GatherLimits limits_;
  ItemId flat_item_;
  bool complete_ = false;
  std::int64_t step_ = 0, available_ = 0;
  std::vector<Group> order_;
  std::deque<Use> queue_;
  std::map<const Partitioned*, std::int64_t> fetched_for_;
  std::map<const Partitioned*, std::shared_ptr<Gather>> in_flight_;
};

}  // namespace membill
