#include "membill/model_spec.h"

namespace membill {

namespace {

// Experts of which one token uses only some; every other tensor is used whole.
std::int64_t active_elements(const TensorSpec& tensor, const LayerKind& kind) {
  const std::int64_t all = tensor.elements();
  if (tensor.role != TensorRole::expert || !kind.moe || kind.moe->experts == 0) return all;
  return checked_mul(all / kind.moe->experts, kind.moe->experts_per_token);
}

template <typename Count>
std::int64_t sum_over_layers(const std::vector<Section>& sections, Count count) {
  std::int64_t total = 0;
  for (const Section& section : sections) {
    std::vector<std::int64_t> repeats(section.kinds.size(), section.layer_kinds.empty() ? 1 : 0);
    for (const std::int32_t kind : section.layer_kinds) ++repeats[static_cast<std::size_t>(kind)];
    for (std::size_t k = 0; k < section.kinds.size(); ++k) {
      std::int64_t once = 0;
      for (const TensorSpec& tensor : section.kinds[k].tensors) {
        if (!tensor.buffer) once = checked_add(once, count(tensor, section.kinds[k]));
      }
      total = checked_add(total, checked_mul(once, repeats[k]));
    }
  }
  return total;
}

}  // namespace

std::int64_t TensorSpec::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product = checked_mul(product, extent);
  return product;
}

std::string TensorSpec::module_name() const {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? std::string() : name.substr(0, dot);
}

std::int64_t ModelSpec::parameters() const {
  if (stated_parameters) return *stated_parameters;
  return sum_over_layers(sections, [](const TensorSpec& tensor, const LayerKind&) { return tensor.elements(); });
}

std::int64_t ModelSpec::active_parameters() const {
  if (active_parameters_stated) return *active_parameters_stated;
  if (stated_parameters) return *stated_parameters;
  return sum_over_layers(sections, active_elements);
}

}  // namespace membill
