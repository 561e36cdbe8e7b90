#include "estimate/communicators.h"

#include "base/engine_keys.h"
#include "blocks/sequence_spread.h"
#include "estimate/engines/placement.h"
#include "estimate/rank_model.h"

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

// megatron-core 0.16 transformer/moe: which ranks the router's auxiliary loss is summed over.
void add_router(Groups& groups, const TrainingPlan& plan, std::int64_t of_stage) {
  const std::string loss = engine_word(plan, "moe_router_load_balancing_type", "none");
  if (loss == "none") return;
  groups.add("runtime.communicator.router", loss == "global_aux_loss" ? of_stage : plan.parallel.tp * plan.parallel.cp);
}

void add_experts(Groups& groups, const TrainingPlan& plan, std::int64_t of_stage) {
  const ParallelPlan& p = plan.parallel;
  const std::int64_t experts = p.ep * p.expert_tp;
  add_router(groups, plan, of_stage);
  if (experts == 1) return;
  const bool gathers = engine_word(plan, "moe_token_dispatcher_type", "alltoall") == "allgather";
  if (!gathers) groups.add("runtime.communicator.expert", p.ep);
  if (!gathers) groups.add("runtime.communicator.expert_tensor", p.expert_tp);
  // Rows, or how many each expert gets: not where every expert gets its capacity.
  if (!engine_flag(plan, "moe_pad_expert_input_to_capacity", false))
    groups.add("runtime.communicator.expert_model", experts);
  groups.add("runtime.communicator.expert_data", of_stage / experts);
  if (plan.sharding.zero != 1) groups.add("runtime.communicator.expert_norm", experts * p.pp);
}

// megatron-core 0.16 parallel_state.py: the groups that layers, gradients, norms and pipeline use.
void add_megatron(Groups& groups, const TrainingPlan& plan, const Hardware& hardware, bool tied) {
  const ParallelPlan& p = plan.parallel;
  const std::int64_t of_stage = hardware.count / p.pp, stage = pipeline_stage(plan, hardware);
  groups.add("runtime.communicator.tensor", p.tp);
  groups.add("runtime.communicator.pipeline", p.pp);
  if (tied && p.pp > 1 && (stage == 0 || stage == p.pp - 1)) groups.add("runtime.communicator.embedding", 2);
  groups.add("runtime.communicator.context", p.cp);
  groups.add("runtime.communicator.data", of_stage / p.tp);
  groups.add("runtime.communicator.model", plan.sharding.zero == 1 ? hardware.count : p.tp * p.pp);
  add_experts(groups, plan, of_stage);
}

}  // namespace

std::vector<Communicator> communicators(const TrainingPlan& plan, const Hardware& hardware, bool tied) {
  const std::int64_t count = hardware.count;
  if (count < 2) return {};
  if (hardware.gpu && hardware.gpu->communicator)
    return {{kAll, count, Range::exact(hardware.gpu->communicator->count())}};
  Groups groups(hardware);
  groups.add(kAll, count);
  if (plan.engine == Engine::megatron) add_megatron(groups, plan, hardware, tied);
  if (plan.engine == Engine::deepspeed) {
    groups.add("runtime.communicator.tensor", plan.parallel.tp);
    groups.add("runtime.communicator.data", data_ranks(plan, hardware).count);  // utils/groups.py _clone_world_group
    groups.add("runtime.communicator.shard",
               static_cast<std::int64_t>(engine_number(plan, "zero_hpz_partition_size", 1)));
    if (runs_mics(plan)) groups.add("runtime.communicator.shard", sharding_ranks(plan, hardware));
    if (runs_mics(plan)) groups.add("runtime.communicator.replica", count / sharding_ranks(plan, hardware));
  }
  groups.add("runtime.communicator.sequence", sequence_ranks(plan));
  if (plan.sharding.fsdp == "hybrid_shard") {
    const std::int64_t shards = sharding_ranks(plan, hardware);
    groups.add("runtime.communicator.shard", shards);
    groups.add("runtime.communicator.data", count / shards);
  }
  return groups.take();
}

Range communicator_bytes(const TrainingPlan& plan, const Hardware& hardware, bool tied) {
  Range sum = Range::exact(0);
  for (const Communicator& one : communicators(plan, hardware, tied))
    sum = {checked_add(*sum.low, *one.bytes.low), checked_add(*sum.likely, *one.bytes.likely),
           checked_add(*sum.high, *one.bytes.high)};
  return sum;
}

}  // namespace membill
