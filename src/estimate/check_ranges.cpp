#include <cmath>

#include "estimate/checks.h"

namespace membill {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1}
                                     << 40;  // of one micro-batch: far beyond any card, products stay in range

void at_least(std::int64_t least, std::int64_t value, const char* key, Problems& problems) {
  if (value < least)
    problems.add({"", key, "must be at least " + std::to_string(least) + ", not " + std::to_string(value), ""});
}

void at_least_one_if_given(const std::optional<std::int64_t>& value, const char* key, Problems& problems) {
  if (value) at_least(1, *value, key, problems);
}

void fraction(double value, const char* key, Problems& problems) {
  if (!(value >= 0.0 && value < 1.0)) problems.add({"", key, "must be at least 0 and below 1", ""});
}

void check_counts(const TrainingPlan& plan, Problems& problems) {
  at_least(1, plan.batch, "batch", problems);
  at_least(1, plan.seq, "seq", problems);
  at_least(1, plan.accumulate, "accumulate", problems);
  at_least(1, plan.adapter.rank, "adapter.rank", problems);
  at_least(1, plan.adapter.virtual_tokens, "adapter.virtual_tokens", problems);
  at_least_one_if_given(plan.adapter.init_rank, "adapter.init_rank", problems);
  at_least(0, plan.freeze.trainable_layers, "freeze.trainable_layers", problems);
  at_least(1, plan.checkpointing.every, "checkpointing.every", problems);
  at_least_one_if_given(plan.checkpointing.layers, "checkpointing.layers", problems);
  at_least_one_if_given(plan.evaluation.batch, "evaluation.batch", problems);
  at_least_one_if_given(plan.evaluation.samples, "evaluation.samples", problems);
  at_least_one_if_given(plan.evaluation.accumulation_steps, "evaluation.accumulation_steps", problems);
  at_least(1, plan.inference.block, "inference.block", problems);
  at_least_one_if_given(plan.vocab_pad_to, "vocab_pad_to", problems);
  at_least_one_if_given(plan.sharding.shard_group, "sharding.shard_group", problems);
  at_least_one_if_given(plan.completion, "completion", problems);
  at_least_one_if_given(plan.prompt, "prompt", problems);
  at_least_one_if_given(plan.generations, "generations", problems);
  const ParallelPlan& p = plan.parallel;
  at_least(1, p.tp, "parallel.tp", problems);
  at_least(1, p.pp, "parallel.pp", problems);
  at_least(1, p.virtual_pp, "parallel.virtual_pp", problems);
  at_least(1, p.cp, "parallel.cp", problems);
  at_least(1, p.ulysses, "parallel.ulysses", problems);
  at_least(1, p.ep, "parallel.ep", problems);
  at_least(1, p.expert_tp, "parallel.expert_tp", problems);
}

}  // namespace

void check_ranges(const TrainingPlan& plan, Problems& problems) {
  check_counts(plan, problems);
  fraction(plan.adapter.dropout, "adapter.dropout", problems);
  if (plan.dropout) fraction(*plan.dropout, "dropout", problems);
  if (!(plan.imbalance >= 1.0) || !std::isfinite(plan.imbalance))
    problems.add({"", "imbalance", "must be at least 1", ""});
  if (plan.sharding.zero < 0 || plan.sharding.zero > 3) problems.add({"", "sharding.zero", "must be 0, 1, 2 or 3", ""});
  if (plan.batch >= 1 && plan.seq >= 1 && plan.batch > kMostTokens / plan.seq) {
    problems.add({"", "batch", "batch times seq is too large", "2^40 tokens at most"});
  }
  const bool unnamed = plan.checkpointing.mode == Checkpointing::selective && plan.checkpointing.selective.empty();
  if (unnamed && plan.engine != Engine::megatron) {
    problems.add({"", "checkpointing", "selective needs names of what to recompute", "selective:core_attn"});
  }
  if (plan.loss == LossKind::chunked) at_least(1, plan.loss_chunk, "loss", problems);
  for (const auto& [given, key] : {std::pair{plan.completion, "completion"}, std::pair{plan.prompt, "prompt"}}) {
    if (given && *given > plan.seq) problems.add({"", key, "exceeds seq, " + std::to_string(plan.seq), ""});
  }
}

}  // namespace membill
