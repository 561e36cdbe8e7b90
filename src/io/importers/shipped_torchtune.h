// The YAML files that torchtune ships, which `tune run --config llama3_1/8B_lora` names without a path.
#pragma once

#include <optional>
#include <string>

#include "membill/value.h"

namespace membill::io {

// The keys of the shipped file `name` ("llama3_1/8B_lora", "recipes/configs/llama3_1/8B_lora.yaml") that matter to memory; nothing when
// torchtune ships none of that name, or a file of that path is here.
[[nodiscard]] std::optional<Value> shipped_torchtune(const std::string& name);

}  // namespace membill::io
