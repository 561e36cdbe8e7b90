// Values of plan.sharding.engine_keys, which are kept as the engine spells them; `fallback` when a key is absent or auto.
#pragma once

#include <string>

#include "membill/training_plan.h"

namespace membill {

[[nodiscard]] std::string engine_word(const TrainingPlan& plan, const char* key, const char* fallback);
[[nodiscard]] double engine_number(const TrainingPlan& plan, const char* key, double fallback);
[[nodiscard]] bool engine_flag(const TrainingPlan& plan, const char* key, bool fallback);

}  // namespace membill
