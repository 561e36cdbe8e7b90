// Adapters that make a whole matrix and multiply by it: LoHa and LoKr (peft 0.21.2).
#pragma once

#include "blocks/forward.h"

namespace membill {

// module(x) with such an adapter. REQUIRES: module.matrix.
[[nodiscard]] Tensor apply_matrix(Forward& f, Module& module, Tensor x);

}  // namespace membill
