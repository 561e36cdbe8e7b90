// Rotary positions as complex numbers: deepseek_v2, llama4 (apply_rotary_emb of their classes).
#pragma once

#include <utility>

#include "blocks/forward.h"

namespace membill {

// One complex number (8 bytes) for each pair of rotated columns and position.
[[nodiscard]] Tensor complex_table(Forward& f, const Size& rotary);
// Queries and keys in fp32, seen as complex numbers, times `table`, back in their types: of fp32 both casts are none. The wide ones live
// until both are rotated; each rotated one until it is cast (deepseek_v2).
[[nodiscard]] std::pair<Tensor, Tensor> rotate_each_complex(Forward& f, const Tensor& q, const Tensor& k,
                                                            const Tensor& table);
// The same, with both rotated ones in fp32 until the function returns (llama4, torchtitan).
[[nodiscard]] std::pair<Tensor, Tensor> rotate_both_complex(Forward& f, const Tensor& q, const Tensor& k,
                                                            const Tensor& table);

}  // namespace membill
