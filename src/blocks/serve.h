// A serving engine with a paged cache: what it holds while it answers.
#pragma once

#include "blocks/causal_lm.h"

namespace membill {

// Engines that put keys and values into pages of a pool (plan.inference.engine).
[[nodiscard]] bool has_paged_cache(const InferencePlan& plan);

// Keys and values of `rows` sequences of `tokens` tokens in pages, then the forward of one chunk of prompts and the next token's
// logits of all rows. Latent attention keeps one compressed vector a token; layers with a window keep the window where the engine
// frees what is outside (vllm, sglang). The forward's activations are those of Transformers' layers, without gradients: engines
// fuse some of them. Source: vllm 0.29 v1/kv_cache_interface.py; sglang 0.5 mem_cache/memory_pool.py; lmdeploy 0.10
// messages.py quant_policy.
void serve_from_pages(Forward& f, const Architecture* architecture, ModelModules& modules, const Size& rows,
                      const Size& tokens);

}  // namespace membill
