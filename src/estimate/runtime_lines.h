// What the CUDA runtime holds of a card: the context beside the caching allocator's memory, and the workspaces that lie inside it.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "membill/hardware.h"
#include "membill/report.h"
#include "membill/training_plan.h"

namespace membill {

// A reading of the memory that a process holds outside of the allocator: context and the kernels loaded so far.
struct ContextReading {
  std::string_view card;  // preset; empty: not named in the source
  bool lazy = true;       // kernels are loaded when first used (PyTorch built for CUDA 11.7 or later)
  std::int64_t mib = 0;
  std::string_view software, source;
};
[[nodiscard]] std::span<const ContextReading> context_readings();

// CUDA context and loaded kernels of one training process. Likely: the reading of this card, else the middle one. Low: the least reading.
// High: the highest, and where kernels load lazily the 450 MiB that later ones were seen to add. Which way they load follows
// plan.software's torch; not named: lazily. Other vendors' cards have ranges of their own. What was measured on the user's own machine
// (GpuSpec::context) goes before all of these.
[[nodiscard]] Range context_bytes(const Hardware& hardware, const TrainingPlan& plan);
// The readings that context_bytes() went by, as a source.
[[nodiscard]] Source context_source(const Hardware& hardware, const TrainingPlan& plan);

// Bytes of one cuBLAS (hipBLAS) workspace. It is taken from the caching allocator, so it is part of the allocated bytes and an item of
// the trace, never a line beside it. 8.125 MiB; 32 MiB from compute capability 9.0 on (torch before 2.15: at 9.0 only); 32 MiB on AMD's
// cards, 128 MiB on those of CDNA 3 and 4. Without a card: 8.125 MiB.
[[nodiscard]] Bytes matmul_workspace_bytes(const Hardware& hardware, const TrainingPlan& plan);

// What the process holds: what the allocator reserved and what lies `beside` it, which is nothing for the allocator's own figure. Low: the tensors' blocks alone, as when a
// cache is given up near the card's limit. Likely: the replay's. High: what other orders of the same requests may leave in the cache
// (blocks_apart.h); under FSDP1 at least a twelfth more than the replay's, which is an observation: of the 62 nvidia-smi readings of
// fms-acceleration on several cards in data/measurements/published.jsonl 13 lie above what the orders leave, all of them by less. What
// they have more grows with the batch, and what FSDP1 hands to another stream (torch 2.15 _flat_param.py, _runtime_utils.py: flat
// parameters and gradients of units) does not; the tensors are not known. Not above the card, unless the likely figure is, and no wider
// than 35 % of the likely figure: the low end rises first. More beside it never lowers an end.
[[nodiscard]] Range held_range(const Range& reserved, const Range& beside, std::optional<std::int64_t> card,
                               Engine engine);

}  // namespace membill
