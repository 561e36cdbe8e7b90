// Which parameters of ZeRO-3 are whole at a time (deepspeed 0.19 runtime/zero/partitioned_param_coordinator.py): a first pass records
// the order in which modules run and gathers each for itself; later ones prefetch along that order and keep what is used again soon.
// A module out of that order makes it invalid until the pass is over; the next one records anew. A pass begins with a forward of the
// model, so a job that calls it twice before its backward (a reference, a KL estimate) seldom prefetches.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "membill/model_spec.h"
#include "membill/training_plan.h"
#include "program/recorder.h"

namespace membill {

// A partitioned parameter.
struct Partitioned {
  std::int64_t number = 0;  // in the order of the model
  std::int64_t elements = 0;
  std::int64_t part = 0;  // elements of one rank's partition
  DType type = DType::bf16;
  DType sent = DType::bf16;  // between ranks; under torch_autocast that of autocast for linears
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
  bool joined = true;  // several parameters are gathered into one tensor; MiCS gathers each in its own
};

// A limit as the plan gives it; `automatic`: "auto" as transformers fills it in (integrations/deepspeed.py trainer_config_finalize).
[[nodiscard]] std::int64_t zero3_limit(const TrainingPlan& plan, const char* key, double fallback,
                                       std::int64_t automatic);
[[nodiscard]] GatherLimits gather_limits(const TrainingPlan& plan, std::int64_t ranks, std::int64_t hidden);

// CUDA streams of stage 3 (stage3.py: the all-gather stream, the reduce-and-partition stream), whose memory the allocator keeps apart.
inline constexpr int kGatherStream = 1, kReduceStream = 2;

class Zero3Coordinator {
 public:
  Zero3Coordinator(Recorder& recorder, GatherLimits limits)
      : r_(recorder), limits_(limits), flat_item_(recorder.writer().item("gathered.flat")) {}

  using Group = std::vector<Partitioned*>;  // parameters of one module, in order

  // A forward of the model begins, and with it a pass; the parameters of its first module are `first` by now.
  void begin_pass(const Group& first);
  // A module is about to run, forward or backward. One without parameters of its own counts, too: it may prefetch.
  void fetch(const Group& module);
  // It has run.
  void release(const Group& module);
  // A checkpoint runs with `parameters`, which do not train, once more: they stay whole until take_attributed(owner), the module whose
  // backward has begun last (deepspeed from 0.19.3, update_recompute_parameters). null: one that is never left.
  using Owner = const void*;
  void attribute(const Group& parameters, Owner owner);
  // The owner's backward is over: what nothing else owns may be released.
  [[nodiscard]] Group take_attributed(Owner owner);
  void release_attributed(Partitioned& parameter);
  // The model runs with these, of another module, too (ds_active_sub_modules): that one's release leaves them whole.
  void hold(const Group& parameters) { held_ = parameters; }
  // The tensor is partitioned again; with hpZ its part of a node's secondary copy stays until the step.
  void partition(Partitioned& parameter);
  // Code reads a parameter itself, without its module; true when it had to be gathered for that.
  bool gather_apart(Partitioned& parameter);

 private:
  enum class Trace : std::uint8_t { invalid, record, complete };

  // One collective: its flat result lives until the last of its parameters has been waited for.
  struct Gather {
    Tensor flat;
    Group members;
    bool done = false, cast = false;
  };
  struct Use {
    Partitioned* parameter;
    std::int64_t step;
  };

  void gather(const Group& parameters);
  void gather_as(const Group& parameters);
  void wait(Partitioned& parameter);
  void prefetch(const Group& fetched);
  [[nodiscard]] bool is_absent(Partitioned& p) const { return !p.whole.defined() && in_flight_.count(&p) == 0; }
  [[nodiscard]] bool is_used_soon(const Partitioned& parameter) const;
  [[nodiscard]] std::int64_t last_fetched_for(const Partitioned& parameter) const;
  [[nodiscard]] bool stays_whole(const Partitioned& parameter) const;
  const Group& kept_after(const Group& module);
  void invalidate();
  void release_in_flight();

  Recorder& r_;
  GatherLimits limits_;
  ItemId flat_item_;
  Trace trace_ = Trace::invalid;
  std::int64_t step_ = 0, available_ = 0;
  Group held_;
  std::vector<std::pair<Owner, Partitioned*>> attributed_;
  std::vector<Group> order_;
  std::deque<Use> queue_;
  std::map<const Partitioned*, std::int64_t> fetched_for_;
  std::map<std::pair<Group, std::int64_t>, Group> kept_;  // by module and step
  std::map<Partitioned*, std::shared_ptr<Gather>> in_flight_;
};

}  // namespace membill
