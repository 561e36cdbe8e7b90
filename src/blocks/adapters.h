// PEFT's low-rank adapters around a linear (peft 0.21.2).
#pragma once

#include "blocks/forward.h"

namespace membill {

// lora.Linear.forward, lora.Linear4bit.forward and DoRA's variant. REQUIRES: module.adapter.
[[nodiscard]] Tensor apply_adapter(Forward& f, Module& module, Tensor x);

}  // namespace membill
