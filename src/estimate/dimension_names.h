// Shapes of weights in the symbols of the formulas.
#pragma once

#include <cstdint>
#include <vector>

#include "blocks/forward.h"

namespace membill {

// Dimensions of a weight in the symbols of the formulas, where a symbol has that value; else the number.
class DimensionNames {
 public:
  DimensionNames(const SymbolTable& symbols, const Dims& dims, const KindDims& kind)
      : symbols_(symbols), dims_(dims), kind_(kind) {}

  [[nodiscard]] Shape shape(const TensorSpec& spec) const;

 private:
  // A matrix of a linear, `out` x `in`.
  [[nodiscard]] Shape matrix(const TensorSpec& spec, std::int64_t out, std::int64_t in) const;
  [[nodiscard]] Size name(std::int64_t value, const std::vector<Size>& candidates) const;

  const SymbolTable& symbols_;
  const Dims& dims_;
  const KindDims& kind_;
};

}  // namespace membill
