// The modules of a model that adapters may be put on, as PEFT sees them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "catalog/adapters.h"

namespace membill::peft {

// Every module with a weight and every bare parameter, in census order. Ranks are left to the caller.
[[nodiscard]] std::vector<AdaptedModule> list_modules(const ModelSpec& model);

[[nodiscard]] bool is_linear(const AdaptedModule& module);
// A linear, conv1d or embedding.
[[nodiscard]] bool can_have_adapter(ModuleKind kind);
// The model's output layer, which all-linear leaves out.
[[nodiscard]] bool is_head(const ModelSpec& model, const AdaptedModule& module);

// How transformers 5 and PEFT treat a type whose experts are fused parameters: names of the former expert modules, and the
// parameter that stands for each. Empty for other types.
struct RewrittenName {
  std::string_view module;     // "gate_proj"
  std::string_view parameter;  // "gate_up_proj"
};
struct Rewrite {
  std::vector<RewrittenName> names;
  std::string_view first_half, second_half;  // the two modules that became gate_up_proj
};
[[nodiscard]] const Rewrite* find_rewrite(std::string_view model_type);

}  // namespace membill::peft
