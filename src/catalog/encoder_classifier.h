// An encoder's head that gives a score for each label of a row, in place of the head that its census has.
#pragma once

#include <cstdint>
#include <string_view>

#include "membill/model_spec.h"

namespace membill {

// Whether AutoModelForSequenceClassification of this encoder is billed.
[[nodiscard]] bool has_encoder_classifier(std::string_view model_type);

// <Type>ForSequenceClassification (transformers 5.24). REQUIRES: has_encoder_classifier(model.model_type).
[[nodiscard]] ModelSpec with_encoder_classifier(const ModelSpec& model, std::int64_t labels);

}  // namespace membill
