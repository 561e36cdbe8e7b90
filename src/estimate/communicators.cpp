#include "estimate/communicators.h"

#include "base/engine_keys.h"
#include "estimate/engines/placement.h"

namespace membill {
namespace {

constexpr std::string_view kAll = "runtime.communicator";

// A planner's table has 342 MiB for two cards; measured at the first barrier of two cards: 0.55 to 2.00 GiB, most often about 1.
Range first_group() { return {(342_MiB).count(), (1_GiB).count(), (2_GiB).count()}; }

// 12 MiB a channel and connection (10 received, 2 sent), 2 to 64 channels; a tree beside the ring where there are more than two ranks.
Range further_group(std::int64_t ranks) {
  constexpr std::int64_t kChannel = (12_MiB).count(), kFewest = 2, kMost = 64;
  const bool pair = ranks == 2;
  return {kFewest * kChannel, (pair ? 342_MiB : 392_MiB).count(), (pair ? 1 : 2) * kMost * kChannel};
}

// HCCL_BUFFSIZE, 200 MB unless set, once to send and once to receive.
Range hccl_group() { return Range::exact((400_MiB).count()); }

class Groups {
 public:
  explicit Groups(const Hardware& hardware) : ascend_(hardware.gpu && hardware.gpu->vendor == "Huawei") {}

  void add(std::string_view id, std::int64_t ranks) {
    if (ranks < 2) return;
    const Range bytes = ascend_ ? hccl_group() : groups_.empty() ? first_group() : further_group(ranks);
    groups_.push_back({id, ranks, bytes});
  }

  [[nodiscard]] std::vector<Communicator> take() { return std::move(groups_); }

 private:
  bool ascend_;
  std::vector<Communicator> groups_;
};

// megatron-core 0.16 parallel_state.py: the groups that layers, gradients, norms and pipeline use.
void add_megatron(Groups& groups, const TrainingPlan& plan, std::int64_t count) {
  const ParallelPlan& p = plan.parallel;
  const std::int64_t of_stage = count / p.pp, experts = p.ep * p.expert_tp;
  groups.add("runtime.communicator.tensor", p.tp);
  groups.add("runtime.communicator.pipeline", p.pp);
  groups.add("runtime.communicator.context", p.cp);
  groups.add("runtime.communicator.data", of_stage / p.tp);
  groups.add("runtime.communicator.model", plan.sharding.zero == 1 ? count : p.tp * p.pp);
  if (experts == 1) return;
  groups.add("runtime.communicator.expert", p.ep);
  groups.add("runtime.communicator.expert_tensor", p.expert_tp);
  groups.add("runtime.communicator.expert_data", of_stage / experts);
}

}  // namespace

std::vector<Communicator> communicators(const TrainingPlan& plan, const Hardware& hardware) {
  const std::int64_t count = hardware.count;
  if (count < 2) return {};
  if (hardware.gpu && hardware.gpu->communicator)
    return {{kAll, count, Range::exact(hardware.gpu->communicator->count())}};
  Groups groups(hardware);
  groups.add(kAll, count);
  if (plan.engine == Engine::megatron) add_megatron(groups, plan, count);
  if (plan.engine == Engine::deepspeed) {
    groups.add("runtime.communicator.tensor", plan.parallel.tp);
    groups.add("runtime.communicator.data", data_ranks(plan, hardware).count);  // utils/groups.py _clone_world_group
    groups.add("runtime.communicator.shard",
               static_cast<std::int64_t>(engine_number(plan, "zero_hpz_partition_size", 1)));
  }
  if (plan.sharding.fsdp == "hybrid_shard") {
    const std::int64_t shards = sharding_ranks(plan, hardware);
    groups.add("runtime.communicator.shard", shards);
    groups.add("runtime.communicator.data", count / shards);
  }
  return groups.take();
}

Range communicator_bytes(const TrainingPlan& plan, const Hardware& hardware) {
  Range sum = Range::exact(0);
  for (const Communicator& one : communicators(plan, hardware))
    sum = {checked_add(*sum.low, *one.bytes.low), checked_add(*sum.likely, *one.bytes.likely),
           checked_add(*sum.high, *one.bytes.high)};
  return sum;
}

}  // namespace membill
