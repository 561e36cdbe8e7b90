// What a job says of its images and of the parts that see them. How many a sequence has no job says: the command line does.
#pragma once

#include <string_view>

#include "io/importers/importer.h"

namespace membill::io {

// A framework's keys; empty: it has none.
struct ImageKeys {
  std::string_view min_pixels, max_pixels, freeze_tower, freeze_projector;
};
inline constexpr ImageKeys kLlamaFactoryImages{"image_min_pixels", "image_max_pixels", "freeze_vision_tower",
                                               "freeze_multi_modal_projector"};
void read_images(KeyReader& reader, const ImageKeys& keys, Draft& draft);

}  // namespace membill::io
