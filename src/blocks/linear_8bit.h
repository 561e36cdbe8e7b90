// LLM.int8 of bitsandbytes 0.50.2.
#pragma once

#include "blocks/forward.h"

namespace membill {

// Linear8bitLt.forward over a frozen int8 weight with threshold 6, for inputs without outliers (how many columns have one depends
// on the data). Its context keeps the input as an attribute, so checkpointing does not let go of it.
[[nodiscard]] Tensor linear_8bit(Forward& f, Module& module, Tensor x);

}  // namespace membill
