// What a multimodal class has beside its language model: the vision tower and the projector.
#pragma once

#include <string_view>

#include "membill/model_spec.h"
#include "membill/problem.h"
#include "membill/value.h"

namespace membill {

// A wrapper's config and its vision part, both with class defaults. `vision_type`: the model type of the part.
struct VisionPart {
  std::string_view wrapper_type, vision_type;
  const Value& wrapper;
  const Value& vision;
};

// Adds the part's weights to the census of the language model, as a section "vision" of tensors that no batch of text reaches.
// False: the tensors of this type are not known. Problems name keys of the part.
[[nodiscard]] bool add_vision_part(ModelSpec& spec, const VisionPart& part, Problems& problems);

// Hugging Face's class of a wrapper's model type; empty: not known.
[[nodiscard]] std::string_view wrapper_class(std::string_view wrapper_type);

// Whether a section of a census is such a part: on the card, never trained.
[[nodiscard]] bool is_vision_part(const Section& section);

}  // namespace membill
