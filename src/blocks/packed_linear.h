// Linears over weights of GPTQ, AWQ, HQQ, fp8 and the formats that engines serve.
#pragma once

#include "blocks/forward.h"

namespace membill {

// REQUIRES: module.quantized, of none of bitsandbytes' formats.
[[nodiscard]] Tensor packed_linear(Forward& f, Module& module, Tensor x);

}  // namespace membill
