// Which parameters of the base train under method full or freeze.
#pragma once

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "membill/model_spec.h"
#include "membill/training_plan.h"

namespace membill {

// A name in freeze.trainable_modules that is no regular expression, though it has a character that no name has.
struct BadPattern {
  std::string name;
};

class TrainedTensors {
 public:
  // Throws BadPattern.
  TrainedTensors(const ModelSpec& model, const TrainingPlan& plan);

  // Whether the tensor trains in that layer of its section; `layer` is 0 outside of stacks.
  [[nodiscard]] bool trains(const Section& section, std::int64_t layer, const TensorSpec& tensor) const;
  // Layers of a section whose tensors train alike have the same number.
  [[nodiscard]] std::int32_t likeness(const Section& section, std::int64_t layer) const;
  // Whether any tensor of the model has the name, or a part between dots, or matches the pattern from its beginning.
  [[nodiscard]] bool matches_any(std::size_t name) const;

 private:
  [[nodiscard]] bool named(std::size_t name, const std::string& parameter) const;
  [[nodiscard]] bool trains_vision(const TensorSpec& tensor) const;
  [[nodiscard]] bool in_trained_layer(const Section& section, std::int64_t layer) const;

  const ModelSpec& model_;
  const TrainingPlan& plan_;
  std::vector<std::optional<std::regex>> patterns_;  // one a name; of plain names it is not used
  mutable std::vector<std::vector<bool>> kinds_;
};

}  // namespace membill
