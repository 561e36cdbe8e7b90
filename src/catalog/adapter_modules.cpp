#include "catalog/adapter_modules.h"

#include <algorithm>
#include <array>

namespace membill::peft {

namespace {

constexpr std::string_view kWeight = ".weight";

// Sets the features of the module that owns `tensor`; false when the tensor makes no module (a bias, a scalar).
bool set_features(AdaptedModule& module, const TensorSpec& tensor) {
  const std::vector<std::int64_t>& shape = tensor.shape;
  module.module = tensor.module;
  module.name = tensor.module == ModuleKind::parameter ? tensor.name : tensor.module_name();
  switch (tensor.module) {
    case ModuleKind::linear:
      if (shape.size() != 2) return false;
      module.out = shape[0];
      module.in = shape[1];
      return true;
    case ModuleKind::conv1d:
    case ModuleKind::embedding:
      if (shape.size() != 2) return false;
      module.in = shape[0];
      module.out = shape[1];
      return true;
    case ModuleKind::norm: return tensor.name.ends_with(kWeight);
    case ModuleKind::parameter:
      if (shape.size() < 2) return false;
      module.matrices = shape.size() == 3 ? shape[0] : 1;
      module.in = shape[shape.size() - 2];
      module.out = shape[shape.size() - 1];
      return true;
  }
  return false;
}

std::vector<std::int64_t> layers_of_kind(const Section& section, std::size_t kind) {
  if (section.layer_kinds.empty()) return {0};
  std::vector<std::int64_t> layers;
  for (std::size_t layer = 0; layer < section.layer_kinds.size(); ++layer) {
    if (static_cast<std::size_t>(section.layer_kinds[layer]) == kind)
      layers.push_back(static_cast<std::int64_t>(layer));
  }
  return layers;
}

// A tied head owns no tensor, but it is a module that may be named.
void add_tied_head(std::vector<AdaptedModule>& modules, const ModelSpec& model) {
  if (!model.tied_embeddings || model.class_name.ends_with("Model")) return;
  AdaptedModule head;
  head.layers = {0};
  head.name = "lm_head";
  head.in = model.hidden;
  head.out = model.vocab;
  head.tied_head = true;
  modules.push_back(std::move(head));
}

}  // namespace

std::vector<AdaptedModule> list_modules(const ModelSpec& model) {
  std::vector<AdaptedModule> modules;
  for (std::size_t s = 0; s < model.sections.size(); ++s) {
    const Section& section = model.sections[s];
    for (std::size_t k = 0; k < section.kinds.size(); ++k) {
      const std::vector<std::int64_t> layers = layers_of_kind(section, k);
      for (const TensorSpec& tensor : section.kinds[k].tensors) {
        AdaptedModule module;
        if (tensor.buffer || !set_features(module, tensor)) continue;
        module.section = s;
        module.kind = k;
        module.layers = layers;
        modules.push_back(std::move(module));
      }
    }
  }
  add_tied_head(modules, model);
  return modules;
}

bool is_linear(const AdaptedModule& module) {
  return module.module == ModuleKind::linear || module.module == ModuleKind::conv1d;
}

bool can_have_adapter(ModuleKind kind) {
  return kind == ModuleKind::linear || kind == ModuleKind::conv1d || kind == ModuleKind::embedding;
}

bool is_head(const ModelSpec& model, const AdaptedModule& module) {
  if (module.tied_head) return true;
  const std::vector<TensorSpec>& tensors = model.sections[module.section].kinds[module.kind].tensors;
  return std::any_of(tensors.begin(), tensors.end(), [&](const TensorSpec& tensor) {
    return tensor.role == TensorRole::head && tensor.module == ModuleKind::linear &&
           tensor.module_name() == module.name;
  });
}

const Rewrite* find_rewrite(std::string_view model_type) {
  static const Rewrite kMixtral{
      {{"gate", "gate.weight"}, {"w1", "gate_up_proj"}, {"w3", "gate_up_proj"}, {"w2", "down_proj"}}, "w1", "w3"};
  static const Rewrite kQwen2Moe{
      {{"gate", "gate.weight"}, {"gate_proj", "gate_up_proj"}, {"up_proj", "gate_up_proj"}, {"down_proj", "down_proj"}},
      "gate_proj",
      "up_proj"};
  constexpr std::array<std::string_view, 3> kLikeMixtral = {"minimax", "minimax_m2", "mixtral"};
  constexpr std::array<std::string_view, 24> kLikeQwen2Moe = {"afmoe",
                                                              "deepseek_v2",
                                                              "deepseek_v3",
                                                              "deepseek_v32",
                                                              "dots1",
                                                              "ernie4_5_moe",
                                                              "glm4_moe",
                                                              "glm4_moe_lite",
                                                              "glm_moe_dsa",
                                                              "glm4v_moe",
                                                              "longcat_flash",
                                                              "solar_open",
                                                              "mellum",
                                                              "qwen3_moe",
                                                              "beam",
                                                              "qwen3_omni_moe",
                                                              "qwen3_omni_moe_thinker",
                                                              "qwen3_omni_moe_text",
                                                              "qwen3_next",
                                                              "hunyuan_v1_moe",
                                                              "flex_olmo",
                                                              "olmoe",
                                                              "sarvam_mla",
                                                              "exaone_moe"};
  if (std::find(kLikeMixtral.begin(), kLikeMixtral.end(), model_type) != kLikeMixtral.end()) return &kMixtral;
  // kimi_k2 is built as deepseek_v3.
  if (model_type == "kimi_k2") return &kQwen2Moe;
  if (std::find(kLikeQwen2Moe.begin(), kLikeQwen2Moe.end(), model_type) != kLikeQwen2Moe.end()) return &kQwen2Moe;
  return nullptr;
}

}  // namespace membill::peft
