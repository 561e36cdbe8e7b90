// Tensors that a node of the graph keeps though its gradient does not need them.
#pragma once

#include "program/recorder.h"

namespace membill {

// x, with `kept` saved until the backward of x is done.
[[nodiscard]] Tensor also_keeping(Recorder& r, const Tensor& x, const Tensor& kept);

}  // namespace membill
