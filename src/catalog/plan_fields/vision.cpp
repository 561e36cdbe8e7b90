#include <string>

#include "catalog/plan_fields/row.h"
#include "membill/problem.h"

namespace membill {
namespace {

using Plan = TrainingPlan;

constexpr auto kVision = &Plan::vision;
constexpr std::int64_t kLargestSide = 100'000;  // pixels, so that the products of a size and its limits stay in range
constexpr std::string_view kNeedsSize = "needs a width and a height in pixels";

std::string read_side(std::string_view text, std::int64_t& side) {
  std::string why;
  if (!parse_count(text, side, why)) return std::string(kNeedsSize);
  return side >= 1 && side <= kLargestSide ? std::string()
                                           : "needs sides of 1 to " + std::to_string(kLargestSide) + " pixels";
}

// WIDTHxHEIGHT.
std::string read_size(const Value& value, Plan& plan, std::string& hint) {
  if (value.is_null()) return plan.vision.width = plan.vision.height = 0, std::string();
  const std::string text = value.is_string() ? value.as_string() : std::string();
  const std::size_t cross = text.find('x');
  hint = "1280x720";
  if (cross == std::string::npos) return std::string(kNeedsSize);
  std::int64_t width = 0, height = 0;
  std::string wrong = read_side(std::string_view(text).substr(0, cross), width);
  if (wrong.empty()) wrong = read_side(std::string_view(text).substr(cross + 1), height);
  if (!wrong.empty()) return wrong;
  hint.clear();
  plan.vision.width = width;
  plan.vision.height = height;
  return {};
}

std::string write_size(const Plan& plan) {
  if (plan.vision.width == 0) return "null";
  return to_json(std::to_string(plan.vision.width) + "x" + std::to_string(plan.vision.height));
}

}  // namespace

std::vector<PlanFieldRow> vision_fields() {
  return {
      count_row<0, kLargestSide, kVision, &VisionPlan::images>(
          {"vision.images", "--images", "images of each sequence; their tokens are part of seq"}),
      make_row({"vision.image_size", "--image-size", "pixels of an image before the processor scales it"},
               "WIDTHxHEIGHT", read_size, write_size),
      count_row<1, kLargestCount, kVision, &VisionPlan::min_pixels>(
          {"vision.image_min_pixels", "--image-min-pixels", "smaller images are scaled up to so many pixels"}),
      count_row<1, kLargestCount, kVision, &VisionPlan::max_pixels>(
          {"vision.image_max_pixels", "--image-max-pixels", "larger images are scaled down to so many pixels"}),
      bool_row<kVision, &VisionPlan::freeze_tower>(
          {"vision.freeze_tower", "--freeze-tower", "full training leaves the vision tower as it is"}),
      bool_row<kVision, &VisionPlan::freeze_projector>(
          {"vision.freeze_projector", "--freeze-projector", "full training leaves the projector as it is"}),
  };
}

}  // namespace membill
