// What follows an encoder: the class that the file's `architectures` names decides it.
#pragma once

#include <cstdint>

#include "catalog/families/config_reader.h"

namespace membill::census {

enum class EncoderHead : std::uint8_t { pooler, words, pretraining, classifier };

[[nodiscard]] EncoderHead read_encoder_head(const ConfigReader& config);
// The first class of `architectures`; `fallback` for the base model.
[[nodiscard]] std::string encoder_class(const ConfigReader& config, std::string_view fallback);
// Labels of a classifier.
[[nodiscard]] std::int64_t label_count(const ConfigReader& config);

}  // namespace membill::census
