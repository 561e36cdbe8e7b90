// Attention of a rank that holds a part of each sequence (parallel.cp, parallel.ulysses), outside of Megatron. Ulysses trades tokens for
// heads by all-to-all, so that the kernel sees whole sequences; the others bring the keys and values of all ranks past the rank's queries.
#pragma once

#include <cstdint>

#include "membill/training_plan.h"

namespace membill {

// Whose code it is (sharding.sequence_code). accelerate: DeepSpeed's UlyssesSPAttentionHF for parallel.ulysses, torch's context_parallel
// for parallel.cp.
enum class SequenceCode : std::uint8_t { accelerate, ms_swift, verl, axolotl };
[[nodiscard]] SequenceCode sequence_code(const TrainingPlan& plan);

// Ranks that share a sequence, 1 where each has its own; always 1 under Megatron, whose layers see to it themselves.
[[nodiscard]] std::int64_t sequence_ranks(const TrainingPlan& plan);

// Whether a batch brings positions for each of its rows, since the rank's tokens are not the first ones.
[[nodiscard]] bool brings_positions(const TrainingPlan& plan);

// Whether the loss gets labels that were shifted before sequences were cut.
[[nodiscard]] bool has_shifted_labels(const TrainingPlan& plan);

// Whether the losses of single tokens are computed outside of the model and gathered.
[[nodiscard]] bool gathers_token_losses(const TrainingPlan& plan);

}  // namespace membill
