// Rotary positions as complex numbers: deepseek_v2, llama4 (apply_rotary_emb of their classes).
#pragma once

#include <utility>

#include "blocks/forward.h"

namespace membill {

// One complex number (8 bytes) for each pair of rotated columns and position.
[[nodiscard]] Tensor complex_table(Forward& f, const Size& rotary);
// x in fp32, seen as complex numbers, times `table`, back in x's type. Both casts are none for fp32. `dense`: x's gradient comes
// in one piece.
[[nodiscard]] Tensor rotate_complex(Forward& f, const Tensor& x, const Tensor& table);
// Queries and keys together, as one function's local variables: both are in fp32 until it returns (torchtitan's apply_rotary_emb).
[[nodiscard]] std::pair<Tensor, Tensor> rotate_both_complex(Forward& f, const Tensor& q, const Tensor& k,
                                                            const Tensor& table);

}  // namespace membill
