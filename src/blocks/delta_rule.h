// torch_chunk_gated_delta_rule of transformers 5.24: a recurrence over chunks of 64 tokens, in fp32.
#pragma once

#include "blocks/forward.h"

namespace membill {

struct DeltaRuleInputs {
  Tensor query, key, value;  // rows of heads
  Tensor beta, decay;        // rows of tokens, one column a value head
};
// Rows of value heads in the type of the queries. The number of chunks is part of the program: it binds a trace to one length.
// `last_state`: receives the state after the last chunk.
[[nodiscard]] Tensor chunked_delta_rule(Forward& f, const LayerContext& layer, DeltaRuleInputs inputs,
                                        Tensor* last_state = nullptr);

}  // namespace membill
