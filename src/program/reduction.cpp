#include "program/reduction.h"

#include <algorithm>
#include <bit>

namespace membill {
namespace {

constexpr std::int64_t kThreads = 512, kWarp = 32;                     // of a block, at most
constexpr std::int64_t kFewValues = 16, kManyValues = 256;             // that one thread sums
constexpr std::int64_t kMultiprocessors = 108, kThreadsOfEach = 2048;  // of an A100

struct Launch {
  std::int64_t vector = 1, width = 1, height = 1;  // outputs of a thread; threads of a block
  std::int64_t grid = 1, blocks_per_output = 1;
};

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t power_of_two(std::int64_t value, std::int64_t most) {
  return std::min(static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(value))), most);
}

Launch plan_launch(std::int64_t rows, std::int64_t outputs) {
  Launch launch;
  for (launch.vector = 4; outputs % launch.vector != 0;) launch.vector /= 2;
  const std::int64_t threads = kThreads / launch.vector, columns = outputs / launch.vector;
  launch.width = std::min(power_of_two(columns, threads), kWarp);
  launch.height = std::min(power_of_two(rows, threads), threads / launch.width);
  launch.width = std::min(power_of_two(columns, threads), threads / launch.height);
  if (rows < std::min(launch.height * kFewValues, kManyValues)) return launch;
  const std::int64_t values = divide_up(rows, launch.height);
  const std::int64_t busy = kMultiprocessors * (kThreadsOfEach / (launch.width * launch.height));
  launch.grid = divide_up(columns, launch.width);
  if (values < kManyValues || launch.grid > busy) return launch;
  launch.blocks_per_output =
      std::max(std::min(divide_up(busy, launch.grid), divide_up(values, kFewValues)), divide_up(values, kManyValues));
  return launch;
}

}  // namespace

void use_reduction_scratch(Recorder& r, const Size& rows, const Size& width) {
  const Launch launch = plan_launch(r.symbols().evaluate(rows), r.symbols().evaluate(width));
  if (launch.blocks_per_output == 1) return;
  const Size places(launch.blocks_per_output * launch.width * launch.vector);
  const Tensor partial = r.empty({places, width}, DType::fp32, "partial sums");
  const Tensor semaphores = r.empty({Size(launch.grid), Size(1)}, DType::int32, "semaphores of the sum");
}

}  // namespace membill
