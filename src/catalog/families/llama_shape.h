// The dense llama shape, which the llama family and the generic model share.
#pragma once

#include "catalog/families/config_reader.h"
#include "membill/model_spec.h"

namespace membill::census {

// Fills a spec of llama's shape: separate q, k, v, o; gate, up, down; two RMS norms a layer; optional biases.
[[nodiscard]] ModelSpec describe_llama_shape(const ConfigReader& config, std::string_view model_type,
                                             std::string_view class_name);

}  // namespace membill::census
