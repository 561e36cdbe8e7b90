// Patches and tokens of images, against what Qwen's processors make of the same sizes.
#include "blocks/vision.h"

#include <numeric>

#include "support/catch.h"

namespace membill {
namespace {

VisionSpec qwen2_5_vl() {
  VisionSpec vision;
  vision.patch = 14;
  vision.merge = 2;
  vision.window = 112;
  vision.min_pixels = 56 * 56;
  vision.max_pixels = 16384 * 28 * 28;
  return vision;
}

struct Case {
  std::int64_t width, height, rows, columns, tokens;
};

VisionPlan sized(std::int64_t width, std::int64_t height) {
  VisionPlan plan;
  plan.images = 1;
  plan.width = width;
  plan.height = height;
  return plan;
}

}  // namespace

TEST_CASE("images are scaled to whole tokens as Qwen's processors scale them") {
  constexpr Case kCases[] = {{1280, 720, 52, 92, 1196},
                             {420, 560, 40, 30, 300},
                             {30, 20, 4, 6, 6},
                             {70, 42, 4, 4, 4},
                             {14, 14, 4, 4, 4},
                             {8000, 6000, 220, 294, 16170},
                             {100000, 1000, 24, 2560, 15360}};
  for (const Case& image : kCases) {
    const ImageGrid grid = image_grid(qwen2_5_vl(), sized(image.width, image.height));
    CHECK(grid.rows == image.rows);
    CHECK(grid.columns == image.columns);
    CHECK(grid.tokens == image.tokens);
  }
}

TEST_CASE("an image without a size is the largest square that its limit allows") {
  VisionPlan plan = sized(0, 0);
  CHECK_FALSE(has_image_size(qwen2_5_vl(), plan));
  plan.max_pixels = 768 * 768;
  CHECK(has_image_size(qwen2_5_vl(), plan));
  CHECK(image_grid(qwen2_5_vl(), plan).tokens == 729);
  plan.width = 1920;
  plan.height = 1080;
  CHECK(image_grid(qwen2_5_vl(), plan).tokens == 720);
}

TEST_CASE("windows cover an image, smaller ones at its right and lower edge") {
  const ImageGrid grid = image_grid(qwen2_5_vl(), sized(560, 420));  // 15 x 20 tokens, windows of 4 x 4
  const std::vector<std::int64_t> lengths = window_lengths(qwen2_5_vl(), grid);
  CHECK(lengths.size() == 20);
  CHECK(lengths.front() == 64);
  CHECK(lengths.back() == 48);
  CHECK(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}) == grid.patches());
}

}  // namespace membill
