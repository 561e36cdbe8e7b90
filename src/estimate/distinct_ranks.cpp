#include "estimate/distinct_ranks.h"

#include "estimate/rank_model.h"

namespace membill {
namespace {

RankKind kind_of(const TrainingPlan& plan, const Hardware& hardware, std::int64_t rank) {
  Hardware of_rank = hardware;
  of_rank.rank = rank;
  if (plan.engine != Engine::megatron || plan.parallel.pp == 1) return {rank, "rank " + std::to_string(rank)};
  return {rank, "stage " + std::to_string(pipeline_stage(plan, of_rank))};
}

}  // namespace

std::vector<RankKind> distinct_ranks(const TrainingPlan& plan, const Hardware& hardware) {
  if (hardware.rank) return {kind_of(plan, hardware, *hardware.rank)};
  std::vector<RankKind> kinds;
  const bool by_tensor = plan.engine == Engine::deepspeed && (plan.sharding.zero == 1 || plan.sharding.zero == 2);
  if (by_tensor && hardware.count > 1) kinds.push_back(kind_of(plan, hardware, hardware.count - 1));
  const std::int64_t stages = plan.engine == Engine::megatron ? plan.parallel.pp : 1;
  for (std::int64_t stage = 0; stage < stages; ++stage)
    kinds.push_back(kind_of(plan, hardware, stage * (hardware.count / stages)));
  return kinds;
}

}  // namespace membill
