// Low-rank adapters around a linear: PEFT's (peft 0.21.2) and litgpt's.
#pragma once

#include "blocks/forward.h"

namespace membill {

// lora.Linear.forward, lora.Linear4bit.forward and DoRA's variant. REQUIRES: module.adapter.
[[nodiscard]] Tensor apply_adapter(Forward& f, Module& module, Tensor x);
// PEFT clones what a linear over bitsandbytes' 4 bits gives before it adds to it.
[[nodiscard]] Tensor cloned_base_result(Forward& f, const Module& module, Tensor result);
[[nodiscard]] Tensor apply_embedding_adapter(Forward& f, Module& module, const Tensor& ids);

// What litgpt's LoRAQKVLinear gives queries, keys and values in common (litgpt 0.5.13 lora.py).
struct LitgptInput {
  Tensor dropped;       // made by the first module that has an adapter
  bool padded = false;  // not all three have one: the adapters' results are copied into zeros
};
// litgpt's LoRALinear; the base result where `module` has no adapter.
[[nodiscard]] Tensor apply_litgpt_adapter(Forward& f, Module& module, const Tensor& x, LitgptInput& shared);

}  // namespace membill
