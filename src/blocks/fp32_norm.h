// Parts that implementations outside of Hugging Face's share: torchtune's and litgpt's.
#pragma once

#include "blocks/forward.h"

namespace membill {

// A norm written out over x.float(): fp32 throughout, then cast back.
[[nodiscard]] Tensor fp32_rms_norm(Forward& f, Module& module, const Tensor& x);

// Rotary embedding of heads by their halves: x cos + (-x2, x1) sin.
[[nodiscard]] Tensor rotate_halves(Forward& f, const Tensor& x);

// silu(gate) * up, then down.
[[nodiscard]] Tensor tune_mlp(Forward& f, const Modules& modules, const Tensor& x);

}  // namespace membill
