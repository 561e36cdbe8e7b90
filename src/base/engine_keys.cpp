#include "base/engine_keys.h"

#include <cstdlib>

namespace membill {

std::string engine_word(const TrainingPlan& plan, const char* key, const char* fallback) {
  const auto found = plan.sharding.engine_keys.find(key);
  return found == plan.sharding.engine_keys.end() || found->second == "auto" ? fallback : found->second;
}

double engine_number(const TrainingPlan& plan, const char* key, double fallback) {
  const std::string word = engine_word(plan, key, "");
  return word.empty() ? fallback : std::strtod(word.c_str(), nullptr);
}

bool engine_flag(const TrainingPlan& plan, const char* key, bool fallback) {
  return engine_word(plan, key, fallback ? "true" : "false") == "true";
}

}  // namespace membill
