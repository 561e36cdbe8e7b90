// Host memory that the weights take between their files and the cards.
#pragma once

#include <cstdint>
#include <string>

#include "membill/hardware.h"
#include "membill/model_spec.h"
#include "membill/report.h"
#include "membill/training_plan.h"

namespace membill {

// Copies of the weights that the ranks of a node make on the host before they move them to their cards.
struct Loading {
  DType type = DType::bf16;
  std::int64_t copy = 0;    // bytes of one; 0: the weights stay in their files, mapped
  std::int64_t copies = 0;  // of a node
};

// What the Trainer's loading does: transformers from 5.0 maps safetensors files and copies a weight only where its type changes; FSDP2
// makes what trains fp32 before it shards (accelerate fsdp_utils.py); earlier releases copy every weight. One rank of a node loads under
// cpu_ram_efficient_loading, else each does. ZeRO-3 and quantised weights need no copy.
[[nodiscard]] Loading loading_of(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware);

// Empty where there are no copies, or nothing is known of a node.
[[nodiscard]] std::string loading_note(const Loading& loading, const Hardware& hardware);

// A node without memory for the copies runs nothing.
void judge_loading(Report& report, const Loading& loading, const Hardware& hardware);

}  // namespace membill
