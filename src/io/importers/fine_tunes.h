// Fine-tuned models whose names do not spell the model they were made from.
#pragma once

#include <string>
#include <string_view>

namespace membill::io {

// The preset of the base that a published fine-tune has the shapes of ("lmsys/vicuna-13b-v1.5": llama-2-13b), by its name without the
// owner; empty: not known.
[[nodiscard]] std::string base_of_fine_tune(std::string_view name);

}  // namespace membill::io
