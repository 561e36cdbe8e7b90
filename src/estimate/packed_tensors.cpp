#include "estimate/packed_tensors.h"

#include <algorithm>

#include "catalog/module_names.h"
#include "estimate/layer_units.h"

namespace membill {
namespace {

constexpr std::string_view kRegex = "re:";

// Checkpoints of wrappers name the same modules a level deeper.
std::string without_wrapper(std::string name) {
  for (const std::string_view part : {"language_model.", "text_model."}) {
    if (const std::size_t at = name.find(part); at != std::string::npos) name.erase(at, part.size());
  }
  return name.starts_with("model.model.") ? name.substr(6) : name;
}

// A name with '*' for any text, as most lists have it, and not a regular expression.
bool is_glob(const std::string& name) {
  return !name.starts_with(".*") && name.find_first_of("+?[](){}|^$\\") == std::string::npos;
}

bool matches_glob(std::string_view pattern, std::string_view name) {
  std::size_t at = 0, in = 0, star = std::string_view::npos, resume = 0;
  while (in < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      resume = in;
    } else if (at < pattern.size() && pattern[at] == name[in]) {
      ++at, ++in;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      in = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

bool ends_at_module(std::string_view name, std::size_t length) {
  return length == name.size() || name[length] == '.' || (length > 0 && name[length - 1] == '.');
}

// The module itself, or one that it lies in.
bool is_within(std::string_view pattern, std::string_view module) {
  for (std::size_t end = module.find('.'); end != std::string_view::npos; end = module.find('.', end + 1))
    if (matches_glob(pattern, module.substr(0, end)) || matches_glob(pattern, module.substr(0, end + 1))) return true;
  return matches_glob(pattern, module);
}

}  // namespace

PackedTensors::PackedTensors(const ModelSpec&, const TrainingPlan& plan)
    : plan_(plan), row_(weight_format(plan.weights)) {
  if (!row_.quantized || !plan.quantization.skip) return;
  for (const std::string& given : *plan.quantization.skip) {
    const bool regex = given.starts_with(kRegex);
    Skip skip{regex ? given.substr(kRegex.size()) : without_wrapper(given), std::nullopt};
    if (regex || !is_glob(skip.name)) skip.regex = compile_pattern(skip.name);
    skips_.push_back(std::move(skip));
  }
}

bool PackedTensors::packs(const Section& section, std::int64_t layer, const TensorSpec& tensor) const {
  if (!row_.quantized || !can_be_packed(tensor)) return false;
  if (!plan_.quantization.skip)
    return tensor.role != TensorRole::head || plan_.implementation == Implementation::litgpt;
  const std::string name = tensor.shape.size() == 3 ? tensor.name : tensor.module_name();
  return !skips(section.layer_kinds.empty() ? name : with_layer(name, layer));
}

// bitsandbytes and HQQ replace linears; the others know fused experts, and mxfp4 by itself nothing else.
bool PackedTensors::can_be_packed(const TensorSpec& tensor) const {
  const bool library = row_.packing == Packing::bitsandbytes || row_.packing == Packing::llm_int8 ||
                       row_.packing == Packing::half_quadratic;
  const bool experts =
      tensor.role == TensorRole::expert && tensor.module == ModuleKind::parameter && tensor.shape.size() == 3;
  if (experts) return !library;
  if (row_.format == WeightFormat::mxfp4 && !plan_.quantization.skip) return false;
  return tensor.module == ModuleKind::linear && tensor.shape.size() == 2;
}

// transformers 5.24 quantizers/quantizers_utils.py should_convert_module.
bool PackedTensors::skips(const std::string& module) const {
  return std::any_of(skips_.begin(), skips_.end(), [&](const Skip& skip) {
    if (!skip.regex) return module.ends_with(skip.name) || is_within(skip.name, module);
    std::smatch match;
    return std::regex_search(module, match, *skip.regex, std::regex_constants::match_continuous) &&
           ends_at_module(module, static_cast<std::size_t>(match.length()));
  });
}

std::int32_t PackedTensors::likeness(const Section& section, std::int64_t layer) const {
  if (skips_.empty()) return 0;
  const auto kind = static_cast<std::size_t>(section.layer_kinds[static_cast<std::size_t>(layer)]);
  std::vector<bool> tensors;
  for (const TensorSpec& tensor : section.kinds[kind].tensors) tensors.push_back(packs(section, layer, tensor));
  return number_of(std::move(tensors), kinds_);
}

}  // namespace membill
