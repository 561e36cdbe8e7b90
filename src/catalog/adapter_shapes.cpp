#include "catalog/adapter_shapes.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "membill/units.h"

namespace membill {
namespace {

// tuners/lokr/layer.py factorization: two factors, the smaller first; `factor` itself where it divides, else the largest below it
// whose sum with the other is least. None: near the square root.
std::pair<std::int64_t, std::int64_t> factorize(std::int64_t dimension, std::int64_t factor) {
  if (factor > 0 && dimension % factor == 0) return {factor, dimension / factor};
  if (factor < 0) factor = dimension;
  std::int64_t small = 1, large = dimension;
  const std::int64_t longest = small + large;
  while (small < large) {
    std::int64_t next = small + 1;
    while (dimension % next != 0) ++next;
    if (next + dimension / next > longest || next > factor) break;
    small = next;
    large = dimension / next;
  }
  return {std::min(small, large), std::max(small, large)};
}

// tuners/oft/layer.py adjust_oft_parameters: the nearest divisor, the lower of two that are as near.
std::int64_t nearest_divisor(std::int64_t features, std::int64_t wanted) {
  if (wanted >= features) return features;
  std::int64_t higher = wanted, lower = wanted;
  while (features % higher != 0) ++higher;
  while (features % lower != 0) --lower;
  return wanted - lower <= higher - wanted ? lower : higher;
}

std::int64_t pair_or_whole(bool whole, std::int64_t rows, std::int64_t columns, std::int64_t rank) {
  return whole ? checked_mul(rows, columns) : checked_mul(rank, checked_add(rows, columns));
}

}  // namespace

LokrShapes lokr_shapes(std::int64_t in, std::int64_t out, std::int64_t rank, const AdapterPlan& plan) {
  const std::int64_t factor = plan.decompose_factor.value_or(-1);
  LokrShapes shapes;
  std::tie(shapes.first_columns, shapes.second_columns) = factorize(in, factor);
  std::tie(shapes.first_rows, shapes.second_rows) = factorize(out, factor);
  const auto is_low = [rank](std::int64_t rows, std::int64_t columns) {
    return checked_mul(2, rank) < std::max(rows, columns);
  };
  shapes.first_whole = !(plan.decompose_both && is_low(shapes.first_rows, shapes.first_columns));
  shapes.second_whole = !is_low(shapes.second_rows, shapes.second_columns);
  return shapes;
}

OftShapes oft_shapes(std::int64_t in, const AdapterPlan& plan) {
  constexpr std::int64_t kDefaultBlock = 32;  // tuners/oft/config.py
  const std::int64_t block = plan.block_size.value_or(kDefaultBlock);
  OftShapes shapes;
  shapes.width = block > 0 ? nearest_divisor(in, block) : in / nearest_divisor(in, plan.rank);
  shapes.blocks = in / shapes.width;
  return shapes;
}

std::int64_t shaped_parameters(Method method, std::int64_t in, std::int64_t out, std::int64_t rank,
                               const AdapterPlan& plan) {
  if (method == Method::loha) return checked_mul(2, checked_mul(rank, checked_add(in, out)));
  if (method == Method::oft) {
    const OftShapes shapes = oft_shapes(in, plan);
    return checked_mul(shapes.blocks, shapes.angles());
  }
  const LokrShapes shapes = lokr_shapes(in, out, rank, plan);
  return checked_add(pair_or_whole(shapes.first_whole, shapes.first_rows, shapes.first_columns, rank),
                     pair_or_whole(shapes.second_whole, shapes.second_rows, shapes.second_columns, rank));
}

}  // namespace membill
