#include "estimate/trained_tensors.h"

#include <algorithm>

#include "blocks/vision.h"
#include "catalog/module_names.h"
#include "estimate/layer_units.h"
#include "membill/vision_part.h"

namespace membill {

TrainedTensors::TrainedTensors(const ModelSpec& model, const TrainingPlan& plan) : model_(model), plan_(plan) {
  if (plan.method != Method::freeze) return;
  for (const std::string& name : plan.freeze.trainable_modules) {
    patterns_.push_back(is_pattern(name) ? compile_pattern(name) : std::regex());
    if (!patterns_.back()) throw BadPattern{name};
  }
}

bool TrainedTensors::trains(const Section& section, std::int64_t layer, const TensorSpec& tensor) const {
  if (is_vision_part(section)) return sees_images(model_, plan_) && trains_vision(tensor);
  if (plan_.method != Method::freeze) return plan_.method == Method::full;
  if (in_trained_layer(section, layer)) return true;
  const std::string name = with_layer(tensor.name, layer);
  for (std::size_t i = 0; i < patterns_.size(); ++i)
    if (named(i, name)) return true;
  return false;
}

// Parts that frameworks freeze apart: the projector, also where it is a module of the tower, and the rest.
bool TrainedTensors::trains_vision(const TensorSpec& tensor) const {
  if (plan_.method != Method::full) return false;
  constexpr std::string_view kProjectors[] = {".multi_modal_projector.", ".merger.", ".deepstack_merger_list.",
                                              "image_newline"};
  const bool projector = std::any_of(std::begin(kProjectors), std::end(kProjectors), [&](std::string_view word) {
    return tensor.name.find(word) != std::string::npos;
  });
  return projector ? !plan_.vision.freeze_projector : !plan_.vision.freeze_tower;
}

std::int32_t TrainedTensors::likeness(const Section& section, std::int64_t layer) const {
  if (plan_.method != Method::freeze) return 0;
  const auto kind = static_cast<std::size_t>(section.layer_kinds[static_cast<std::size_t>(layer)]);
  std::vector<bool> tensors;
  for (const TensorSpec& tensor : section.kinds[kind].tensors) tensors.push_back(trains(section, layer, tensor));
  return number_of(std::move(tensors), kinds_);
}

bool TrainedTensors::matches_any(std::size_t name) const {
  for (const Section& section : model_.sections)
    for (std::size_t kind = 0; kind < section.kinds.size(); ++kind)
      for (const TensorSpec& tensor : section.kinds[kind].tensors) {
        if (section.layer_kinds.empty() && named(name, tensor.name)) return true;
        for (std::size_t layer = 0; layer < section.layer_kinds.size(); ++layer)
          if (static_cast<std::size_t>(section.layer_kinds[layer]) == kind &&
              named(name, with_layer(tensor.name, static_cast<std::int64_t>(layer))))
            return true;
      }
  return false;
}

bool TrainedTensors::named(std::size_t name, const std::string& parameter) const {
  const std::string& word = plan_.freeze.trainable_modules[name];
  if (is_pattern(word)) return std::regex_search(parameter, *patterns_[name], std::regex_constants::match_continuous);
  return ("." + parameter + ".").find("." + word + ".") != std::string::npos;
}

bool TrainedTensors::in_trained_layer(const Section& section, std::int64_t layer) const {
  return !section.layer_kinds.empty() && layer >= section.repeats() - plan_.freeze.trainable_layers;
}

}  // namespace membill
