// generate() of Transformers: what a model holds while it writes completions.
#pragma once

#include <optional>

#include "blocks/causal_lm.h"

namespace membill {

// How much is generated at once.
struct CompletionSizes {
  Size rows;                 // sequences
  Size prompt, completion;   // tokens of each
  bool keep_scores = false;  // output_scores: those of every token stay
};

// Every row gets its completion, without gradients and with a dynamic cache of keys and values: the prompts' forward, then that of
// the last token. Those between are alike but for the cache, which has grown by then. What stays are the scores, if they
// are kept. Each forward runs under autocast of its own where `autocast` says so. Source: transformers 5.24 generation/utils.py _sample, cache_utils.py DynamicLayer.
Tensor generate_completions(Forward& f, const Architecture& architecture, ModelModules& modules,
                            const CompletionSizes& sizes, std::optional<DType> autocast);

}  // namespace membill
