#include "blocks/sequence_spread.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/engine_keys.h"
#include "blocks/ring_attention.h"
#include "blocks/ulysses.h"

namespace membill {

SequenceCode sequence_code(const TrainingPlan& plan) {
  const std::string word = engine_word(plan, "sequence_code", "accelerate");
  if (word == "ms-swift") return SequenceCode::ms_swift;
  if (word == "verl") return SequenceCode::verl;
  return word == "axolotl" ? SequenceCode::axolotl : SequenceCode::accelerate;
}

std::int64_t sequence_ranks(const TrainingPlan& plan) {
  const bool own = plan.engine == Engine::megatron || plan.implementation == Implementation::megatron;
  return own ? 1 : plan.parallel.cp * plan.parallel.ulysses;
}

bool brings_positions(const TrainingPlan& plan) { return sequence_ranks(plan) > 1; }

bool has_shifted_labels(const TrainingPlan& plan) {
  return sequence_ranks(plan) > 1 && sequence_code(plan) == SequenceCode::accelerate;
}

bool gathers_token_losses(const TrainingPlan& plan) {
  return sequence_ranks(plan) > 1 && sequence_code(plan) == SequenceCode::ms_swift;
}

Tensor run_attention(Forward& f, const AttentionCall& call, Tensor q, Tensor k, Tensor v) {
  if (sequence_ranks(f.plan) == 1) return run_whole_attention(f, call, std::move(q), std::move(k), std::move(v));
  if (f.plan.parallel.ulysses > 1) return ulysses_attention(f, call, q, k, v);
  q = f.r.autocast_input(std::move(q)), k = f.r.autocast_input(std::move(k)), v = f.r.autocast_input(std::move(v));
  return sequence_code(f.plan) == SequenceCode::axolotl ? gathered_ring(f, call, q, k, v)
                                                        : torch_ring(f, call, q, k, v);
}

}  // namespace membill
