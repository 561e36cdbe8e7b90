// Shapes of adapters whose matrices are not a pair of rank r: LoHa, LoKr, OFT (peft 0.21.2).
#pragma once

#include <cstdint>

#include "membill/training_plan.h"

namespace membill {

// LoKr: the matrix is the Kronecker product of `first` and `second`.
struct LokrShapes {
  std::int64_t first_rows = 1, first_columns = 1, second_rows = 1, second_columns = 1;
  bool first_whole = true, second_whole = true;  // else the product of two matrices of the rank
};
// tuners/lokr/layer.py update_layer.
[[nodiscard]] LokrShapes lokr_shapes(std::int64_t in, std::int64_t out, std::int64_t rank, const AdapterPlan& plan);

// OFT: blocks of the input that are turned, each of `width` features.
struct OftShapes {
  std::int64_t blocks = 1, width = 1;
  [[nodiscard]] std::int64_t angles() const { return width * (width - 1) / 2; }  // of a block
};
// tuners/oft/layer.py update_layer: a size that does not divide the input goes to the nearest that does.
[[nodiscard]] OftShapes oft_shapes(std::int64_t in, const AdapterPlan& plan);

// Parameters of the adapter of one module of `in` and `out` features. REQUIRES: one of these three methods. Throws OverflowError.
[[nodiscard]] std::int64_t shaped_parameters(Method method, std::int64_t in, std::int64_t out, std::int64_t rank,
                                             const AdapterPlan& plan);

}  // namespace membill
