// What one rank of a Megatron job holds of the model: its stage's layers, its part of every split tensor, in Megatron's own modules
// (megatron-core 0.16 models/gpt, transformer).
#pragma once

#include <cstdint>
#include <vector>

#include "membill/hardware.h"
#include "membill/model_spec.h"
#include "membill/training_plan.h"

namespace membill {

// Layers of one model chunk of a stage.
struct ChunkLayers {
  std::int64_t first = 0, count = 0;
};
// The chunks of `stage`, one unless the pipeline is interleaved. REQUIRES: validate() accepts the plan.
[[nodiscard]] std::vector<ChunkLayers> chunks_of_stage(const ModelSpec& model, const TrainingPlan& plan,
                                                       std::int64_t stage);

// Layers that the first and the last stage have when the user says so, and what each other stage then has; 0: they do not come out even.
struct StageLayers {
  std::int64_t first = 0, middle = 0, last = 0;
};
[[nodiscard]] StageLayers layers_of_stages(std::int64_t layers, const TrainingPlan& plan);

// The pipeline stage that hardware.rank is in.
[[nodiscard]] std::int64_t pipeline_stage(const TrainingPlan& plan, const Hardware& hardware);

// Rows of the embedding after padding; the whole vocabulary.
[[nodiscard]] std::int64_t padded_vocabulary(const ModelSpec& model, const TrainingPlan& plan);

// The model of a rank of `stage`: a section "embedding" on the first stage, one stack for each chunk, a section "head" on the last.
// Its sizes (heads, MLP width, vocabulary) are the rank's.
[[nodiscard]] ModelSpec rank_model(const ModelSpec& model, const TrainingPlan& plan, std::int64_t stage);

// A model of which only a total is known gets one tensor of that many elements; any other is returned as it is.
[[nodiscard]] ModelSpec with_sections(const ModelSpec& model);

}  // namespace membill
