// What a Hugging Face config.json says of packed weights.
#pragma once

#include "membill/value.h"
#include "membill/weight_format.h"

namespace membill::io {

// quantization_config or compression_config of `config`; without either, the method is empty.
[[nodiscard]] StoredWeights read_quantization(const Value& config);

}  // namespace membill::io
