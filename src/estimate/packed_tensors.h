// Which weights of the base are stored in the plan's packed format, and which stay whole.
#pragma once

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "membill/catalog.h"
#include "membill/model_spec.h"
#include "membill/training_plan.h"

namespace membill {

class PackedTensors {
 public:
  // A skipped name that is no regular expression skips nothing; check_modules() has refused it.
  PackedTensors(const ModelSpec& model, const TrainingPlan& plan);

  // Whether the tensor is packed in that layer of its section; `layer` is 0 outside of stacks.
  [[nodiscard]] bool packs(const Section& section, std::int64_t layer, const TensorSpec& tensor) const;
  // Layers of a section whose tensors are packed alike have the same number.
  [[nodiscard]] std::int32_t likeness(const Section& section, std::int64_t layer) const;

 private:
  struct Skip {
    std::string name;                 // without "re:"
    std::optional<std::regex> regex;  // of patterns
  };

  [[nodiscard]] bool can_be_packed(const TensorSpec& tensor) const;
  [[nodiscard]] bool skips(const std::string& module) const;

  const TrainingPlan& plan_;
  const WeightFormatRow& row_;
  std::vector<Skip> skips_;
  mutable std::vector<std::vector<bool>> kinds_;
};

}  // namespace membill
