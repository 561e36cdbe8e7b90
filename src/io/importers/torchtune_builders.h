// torchtune names models by the functions that build them.
#pragma once

#include <string>

namespace membill::io {

// The preset that a builder makes: "llama3_1_8b" -> "llama-3.1-8b", "qwen2_5_7b_base" -> "qwen2.5-7b"; the name itself when it is no
// known one.
[[nodiscard]] std::string torchtune_preset(std::string builder);
// The module and builder of a preset, "llama3_1.llama3_1_8b"; empty when torchtune has none of its family.
[[nodiscard]] std::string torchtune_builder(const std::string& preset);

}  // namespace membill::io
