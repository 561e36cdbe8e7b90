// Which model types Liger patches.
#pragma once

#include <string_view>

namespace membill {

// Whether liger-kernel 0.8.5 has an apply_liger_kernel_to_<type> for `model_type`, or a generic model takes llama's.
[[nodiscard]] bool is_patched_by_liger(std::string_view model_type);

}  // namespace membill
