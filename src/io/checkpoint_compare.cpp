// compare_with_census: what a checkpoint holds against what the model's class would build.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "io/safetensors.h"
#include "membill/units.h"
#include "membill/vision_part.h"

namespace membill::io {
namespace {

using Shape = std::vector<std::int64_t>;

// Module names that one way of saving puts in front of all tensors and another does not.
constexpr std::array<std::string_view, 12> kLeading{
    "model",    "transformer", "language_model", "text_model", "base_model", "module",
    "backbone", "gpt_neox",    "bert",           "roberta",    "llm",        "language"};
// What quantised storage writes for one weight.
constexpr std::array<std::string_view, 20> kQuantized{".qweight",
                                                      ".qzeros",
                                                      ".scales",
                                                      ".g_idx",
                                                      ".weight_packed",
                                                      ".weight_scale",
                                                      ".weight_shape",
                                                      ".weight_zero_point",
                                                      ".weight_scale_inv",
                                                      ".weight_scale_2",
                                                      ".weight_g_idx",
                                                      ".input_scale",
                                                      ".k_scale",
                                                      ".v_scale",
                                                      "_blocks",
                                                      "_scales",
                                                      ".SCB",
                                                      ".weight_format",
                                                      ".weight_global_scale",
                                                      ".input_global_scale"};
// First modules of towers and projectors beside a language model.
constexpr std::array<std::string_view, 14> kOtherParts{
    "visual",       "vision_tower", "vision_model", "vision_encoder", "multi_modal_projector",
    "mm_projector", "audio_tower",  "audio",        "audio_encoder",  "embed_vision",
    "embed_audio",  "projector",    "vision",       "image_newline"};
constexpr std::array<std::string_view, 5> kBufferEndings{"inv_freq", ".masked_bias", ".attn.bias", ".attention.bias",
                                                         "position_ids"};
constexpr std::array<std::string_view, 5> kTiedCopies{"lm_head.weight", "embed_out.weight",
                                                      "encoder.embed_tokens.weight", "decoder.embed_tokens.weight",
                                                      "output_layer.weight"};
constexpr std::size_t kMostNamed = 3;

template <std::size_t n>
bool has_ending(std::string_view text, const std::array<std::string_view, n>& endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return text.ends_with(ending); });
}

template <std::size_t n>
bool is_one_of(std::string_view text, const std::array<std::string_view, n>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

std::string_view first_part(std::string_view name) { return name.substr(0, name.find('.')); }

std::string_view without_leading(std::string_view name) {
  while (name.find('.') != std::string_view::npos && is_one_of(first_part(name), kLeading))
    name.remove_prefix(first_part(name).size() + 1);
  return name;
}

// Up to and with the layer's number: "layers.7"; "" for tensors outside of any layer.
std::string layer_of(std::string_view name) {
  std::size_t start = 0;
  while (start < name.size()) {
    const std::size_t end = std::min(name.find('.', start), name.size());
    const std::string_view part = name.substr(start, end - start);
    if (!part.empty() && std::all_of(part.begin(), part.end(), is_digit)) return std::string(name.substr(0, end));
    start = end + 1;
  }
  return {};
}

std::string with_index(std::string name, std::size_t index) {
  const std::string digits = std::to_string(index);
  for (std::size_t star = name.find('*'); star != std::string::npos; star = name.find('*', star + digits.size())) {
    name.replace(star, 1, digits);
  }
  return name;
}

// Product of a shape, or -1 when it leaves 64 bits.
std::int64_t elements_of(const Shape& shape) {
  try {
    std::int64_t product = 1;
    for (const std::int64_t extent : shape) product = checked_mul(product, extent);
    return product;
  } catch (const OverflowError&) {
    return -1;
  }
}

std::string to_string(const Shape& shape) {
  std::vector<std::string> parts;
  for (const std::int64_t extent : shape) parts.push_back(std::to_string(extent));
  return "[" + join(parts, ", ") + "]";
}

struct Expected {
  const Shape* shape = nullptr;
  bool buffer = false;
  bool found = false;
};

std::map<std::string, Expected, std::less<>> census_of(const ModelSpec& spec) {
  std::map<std::string, Expected, std::less<>> result;
  for (const Section& section : spec.sections) {
    if (is_vision_part(section)) continue;  // releases name its tensors in many ways
    for (std::size_t i = 0; i < static_cast<std::size_t>(section.repeats()); ++i) {
      const std::size_t kind = section.layer_kinds.empty() ? 0 : static_cast<std::size_t>(section.layer_kinds[i]);
      for (const TensorSpec& tensor : section.kinds.at(kind).tensors) {
        const std::string name = with_index(tensor.name, i);
        result[std::string(without_leading(name))] = Expected{&tensor.shape, tensor.buffer, false};
      }
    }
  }
  return result;
}

// Tensors of one layer that the two sides name differently.
struct Unmatched {
  std::vector<std::string> missing, extra;
  std::int64_t missing_elements = 0, extra_elements = 0;
  bool shapes_known = true;
};

class Comparison {
 public:
  Comparison(const Checkpoint& checkpoint, const ModelSpec& spec)
      : checkpoint_(checkpoint), spec_(spec), census_(census_of(spec)), quantized_(!spec.stored.method.empty()) {}

  std::vector<std::string> run() {
    for (const StoredTensor& tensor : checkpoint_.tensors)
      quantized_ = quantized_ || has_ending(tensor.name, kQuantized);
    for (const StoredTensor& tensor : checkpoint_.tensors) place(tensor);
    for (const auto& [name, expected] : census_) {
      if (expected.found || expected.buffer) continue;
      Unmatched& layer = unmatched_[layer_of(name)];
      layer.missing.push_back(name);
      layer.missing_elements += std::max<std::int64_t>(0, elements_of(*expected.shape));
    }
    return summary();
  }

 private:
  void place(const StoredTensor& tensor) {
    const std::string_view name = without_leading(tensor.name);
    if (const auto found = census_.find(name); found != census_.end()) {
      found->second.found = true;
      compare_shapes(tensor, *found->second.shape);
    } else if (!covers_quantized(name) && !is_harmless(name)) {
      Unmatched& layer = unmatched_[layer_of(name)];
      layer.extra.push_back(tensor.name);
      layer.shapes_known = layer.shapes_known && tensor.shape.has_value();
      if (tensor.shape) layer.extra_elements += std::max<std::int64_t>(0, elements_of(*tensor.shape));
    }
  }

  void compare_shapes(const StoredTensor& tensor, const Shape& expected) {
    if (!tensor.shape || *tensor.shape == expected ||
        (quantized_ && !tensor.dtype.starts_with("BF16") && !tensor.dtype.starts_with("F")))
      return;
    shapes_.push_back(tensor.name + " is " + to_string(*tensor.shape) + ", the census says " + to_string(expected));
  }

  // Marks the weight of which `name` is a part; true when there is one, or when the part belongs to a weight that is named differently.
  bool covers_quantized(std::string_view name) {
    const std::size_t state = name.find(".weight.");
    if (state != std::string_view::npos && quantized_) return mark(name.substr(0, state + 7)), true;
    for (const std::string_view ending : kQuantized) {
      if (!name.ends_with(ending)) continue;
      const std::string module(name.substr(0, name.size() - ending.size()));
      const bool known = mark(ending.front() == '_' ? module : module + ".weight");
      return known || !(ending == ".qweight" || ending == ".weight_packed" || ending == "_blocks");
    }
    return false;
  }

  bool mark(std::string_view name) {
    const auto found = census_.find(name);
    if (found == census_.end()) return false;
    found->second.found = true;
    return true;
  }

  [[nodiscard]] bool is_harmless(std::string_view name) const {
    if (has_ending(name, kBufferEndings)) return true;
    if (spec_.tied_embeddings && is_one_of(name, kTiedCopies)) return true;
    const bool others =
        !spec_.not_counted.empty() || (!spec_.sections.empty() && is_vision_part(spec_.sections.back()));
    return others && is_one_of(first_part(name), kOtherParts);
  }

  // Split or fused otherwise: both sides differ in names but hold the same, or (packed or not to be seen) are experts on both sides.
  [[nodiscard]] bool is_same_under_other_names(const Unmatched& layer) const {
    if (layer.missing.empty() || layer.extra.empty()) return false;
    if (layer.shapes_known && layer.missing_elements == layer.extra_elements) return true;
    const auto is_expert = [](const std::string& name) {
      return name.find("expert") != std::string::npos || name.find("moe") != std::string::npos;
    };
    return (quantized_ || !layer.shapes_known) && std::all_of(layer.missing.begin(), layer.missing.end(), is_expert);
  }

  std::vector<std::string> summary() {
    std::vector<std::string> missing;
    std::vector<std::string> extra;
    for (const auto& [layer, tensors] : unmatched_) {
      if (is_same_under_other_names(tensors)) continue;
      missing.insert(missing.end(), tensors.missing.begin(), tensors.missing.end());
      extra.insert(extra.end(), tensors.extra.begin(), tensors.extra.end());
    }
    std::vector<std::string> warnings;
    for (const std::string& warning : checkpoint_.warnings) warnings.push_back(checkpoint_.file + ": " + warning);
    add(warnings, missing, "not in the checkpoint", " of the census");
    add(warnings, extra, "not in the census", " of the checkpoint");
    add(warnings, shapes_, "of another shape", "");
    if (warnings.empty()) add_size(warnings);
    return warnings;
  }

  void add(std::vector<std::string>& warnings, const std::vector<std::string>& names, const std::string& what,
           const std::string& whose) const {
    if (names.empty()) return;
    const std::size_t count = std::min(kMostNamed, names.size());
    std::vector<std::string> first(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(count));
    if (names.size() > kMostNamed) first.emplace_back("...");
    const std::string tensors = std::to_string(names.size()) + (names.size() == 1 ? " tensor" : " tensors");
    warnings.push_back(checkpoint_.file + ": " + what + ": " + tensors + whose + ": " + join(first, ", "));
  }

  // Only an index is there: its total against the census, in the dtype that the config states.
  void add_size(std::vector<std::string>& warnings) const {
    const std::int64_t width = spec_.stored_dtype == "float32"                                       ? 4
                               : spec_.stored_dtype == "bfloat16" || spec_.stored_dtype == "float16" ? 2
                                                                                                     : 0;
    const bool comparable =
        checkpoint_.total_size && width != 0 && !quantized_ && spec_.not_counted.empty() && !spec_.tied_embeddings;
    if (!comparable || *checkpoint_.total_size % width != 0) return;
    const std::int64_t stored = *checkpoint_.total_size / width;
    if (stored == spec_.parameters()) return;
    warnings.push_back(checkpoint_.file + ": total_size means " + std::to_string(stored) + " parameters of " +
                       spec_.stored_dtype + ", the census has " + std::to_string(spec_.parameters()));
  }

  const Checkpoint& checkpoint_;
  const ModelSpec& spec_;
  std::map<std::string, Expected, std::less<>> census_;
  bool quantized_;
  std::map<std::string, Unmatched> unmatched_;
  std::vector<std::string> shapes_;
};

}  // namespace

std::vector<std::string> compare_with_census(const Checkpoint& checkpoint, const ModelSpec& spec) {
  return Comparison(checkpoint, spec).run();
}

}  // namespace membill::io
