// Arguments of a stage as TRL spells them (plan.stage_args), read as what they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "membill/problem.h"
#include "membill/training_plan.h"

namespace membill {

// Empty when the plan does not give it, or gives something that is none.
[[nodiscard]] std::optional<double> stage_number(const TrainingPlan& plan, std::string_view key);
[[nodiscard]] std::optional<std::int64_t> stage_count(const TrainingPlan& plan, std::string_view key);
[[nodiscard]] std::string stage_word(const TrainingPlan& plan, std::string_view key);
// False unless the plan says true.
[[nodiscard]] bool stage_flag(const TrainingPlan& plan, std::string_view key);

// Whether the job learns to predict tokens: fine-tuning or pre-training.
[[nodiscard]] bool is_supervised(const TrainingPlan& plan);
// Whether TRL's trainers run the stage whatever the job says.
[[nodiscard]] bool is_trl_stage(Stage stage);
// Whether such a job smooths its labels: the Trainer then computes the loss of whole logits outside of the model.
[[nodiscard]] bool smooths_labels(const TrainingPlan& plan);

// Adds a problem for each argument that no stage has, or whose value is not what it takes.
void check_stage_args(const TrainingPlan& plan, Problems& problems);

}  // namespace membill
