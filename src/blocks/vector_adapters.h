// Adapters that train vectors: VeRA and (IA)3 (peft 0.21.2).
#pragma once

#include "blocks/forward.h"

namespace membill {

// module(x) with such an adapter.
[[nodiscard]] Tensor apply_vectors(Forward& f, Module& module, Tensor x);

}  // namespace membill
