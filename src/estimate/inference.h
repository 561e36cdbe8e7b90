// Stage inference: the plan as an engine serves it, and what its share of the card leaves for keys and values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "membill/hardware.h"
#include "membill/problem.h"
#include "membill/report.h"
#include "membill/training_plan.h"

namespace membill {

// The plan without what only training does: the weights' own type, nothing prepared, nothing checkpointed.
[[nodiscard]] TrainingPlan served_plan(const TrainingPlan& plan);

// The card as the job sees it: a serving engine that takes a share of it leaves the rest to others, and a vLLM that generates for
// GRPO on the same card leaves the rest to the training.
[[nodiscard]] Hardware shared_hardware(const TrainingPlan& plan, const Hardware& hardware);

// Sentences for the report: which share the engine takes, and how many sequences of the plan's length it holds beside the weights.
// `report` has items and moments. Empty without a card.
[[nodiscard]] std::vector<std::string> inference_notes(const Report& report, const TrainingPlan& plan,
                                                       const Hardware& hardware);

// A vLLM that generates on the same card and sleeps while the model trains: bytes that it takes when it is awake; 0 without a card.
[[nodiscard]] std::int64_t woken_bytes(const TrainingPlan& plan, const Hardware& hardware);

// The sentence for a vLLM on the same card; empty without one.
[[nodiscard]] std::string colocation_note(const TrainingPlan& plan);

// Adds a problem for what the engine does not do.
void check_inference(const TrainingPlan& plan, Problems& problems);

}  // namespace membill
