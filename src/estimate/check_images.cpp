#include <string>

#include "blocks/vision.h"
#include "estimate/checks.h"
#include "estimate/image_notes.h"

namespace membill {
namespace {

void check_tower(const ModelSpec& model, Problems& problems) {
  if (!model.vision)
    problems.add({"", "vision.images", model.model_type + " has no vision tower that is known", "0"});
  else if (!has_tower_program(*model.vision))
    problems.add({"", "vision.images",
                  "what a tower of type " + model.vision->tower_type + " does with images is not billed yet", "0"});
}

void check_size(const VisionSpec& vision, const TrainingPlan& plan, Problems& problems) {
  const VisionPlan& v = plan.vision;
  if (vision.image_size == 0 && v.min_pixels.value_or(vision.min_pixels) > v.max_pixels.value_or(vision.max_pixels))
    return problems.add({"", "vision.image_min_pixels", "exceeds image_max_pixels", ""});
  if (!has_image_size(vision, v))
    return problems.add(
        {"", "vision.image_size", "is missing: an image has as many tokens as its size makes", "1280x720"});
  const std::int64_t tokens = checked_mul(image_grid(vision, v).tokens, v.images);
  if (tokens > plan.seq)
    problems.add({"", "seq", "is shorter than the " + std::to_string(tokens) + " tokens of the images",
                  std::to_string(tokens) + " or more"});
}

}  // namespace

void check_images(const ModelSpec& model, const TrainingPlan& plan, Problems& problems) {
  if (plan.vision.images == 0 || !model.dimensions_known) return;
  check_tower(model, problems);
  if (sees_images(model, plan)) check_size(*model.vision, plan, problems);
}

std::vector<std::string> image_notes(const ModelSpec& model, const TrainingPlan& plan) {
  if (!sees_images(model, plan)) return {};
  const ImageGrid grid = image_grid(*model.vision, plan.vision);
  const std::string square =
      plan.vision.width == 0 && model.vision->image_size == 0 ? "a square of image_max_pixels: " : "";
  return {"images: " + std::to_string(plan.vision.images) + " a sequence, each " + square + std::to_string(grid.rows) +
              " x " + std::to_string(grid.columns) + " patches and " + std::to_string(grid.tokens) + " of the " +
              std::to_string(plan.seq) + " tokens",
          "images: what cuDNN takes for a moment to embed the patches is not counted"};
}

}  // namespace membill
