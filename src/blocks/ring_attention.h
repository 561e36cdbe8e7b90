// Attention whose keys and values come from all ranks of a sequence. The rank that is billed is the last of them, which has the most to do.
#pragma once

#include "blocks/attention.h"

namespace membill {

// torch 2.15 distributed/tensor/experimental/_context_parallel/_attention.py _templated_ring_attention, with load balance and the rotate
// method allgather, over the flash kernel.
[[nodiscard]] Tensor torch_ring(Forward& f, const AttentionCall& call, const Tensor& q, const Tensor& k,
                                const Tensor& v);

// ring-flash-attn 0.1.8 llama3_flash_attn_varlen.py: the heads of keys and values are gathered one after another.
[[nodiscard]] Tensor gathered_ring(Forward& f, const AttentionCall& call, const Tensor& q, const Tensor& k,
                                   const Tensor& v);

}  // namespace membill
