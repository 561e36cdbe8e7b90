// OFT: an adapter that turns a linear's input (peft 0.21.2).
#pragma once

#include "blocks/forward.h"

namespace membill {

// module(x) with such an adapter. REQUIRES: module.rotation.
[[nodiscard]] Tensor apply_rotation(Forward& f, Module& module, Tensor x);

}  // namespace membill
