#include "io/importers/images.h"

namespace membill::io {

void read_images(KeyReader& reader, const ImageKeys& keys, Draft& draft) {
  if (!draft.is_given("vision.images")) return;
  const auto take_count = [&](std::string_view key, std::string_view plan_key) {
    if (!key.empty()) draft.set(plan_key, reader.count(key, 1));
  };
  take_count(keys.min_pixels, "vision.image_min_pixels");
  take_count(keys.max_pixels, "vision.image_max_pixels");
  const auto take_flag = [&](std::string_view key, std::string_view plan_key) {
    if (!key.empty()) draft.set(plan_key, Value::of(reader.flag(key)));
  };
  take_flag(keys.freeze_tower, "vision.freeze_tower");
  take_flag(keys.freeze_projector, "vision.freeze_projector");
}

}  // namespace membill::io
