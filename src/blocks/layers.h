// Modules as programs call them.
#pragma once

#include "blocks/forward.h"

namespace membill {

// module(x) of a linear or Conv1D with whatever PEFT or bitsandbytes put around it.
[[nodiscard]] Tensor apply_linear(Forward& f, Module& module, Tensor x);
// The base layer alone, without its adapter.
[[nodiscard]] Tensor apply_base(Forward& f, Module& module, Tensor x);
// The weight as one matrix: itself, or dequantised.
[[nodiscard]] Tensor whole_weight(Forward& f, Module& module);
// The embedding lookup of `ids`.
[[nodiscard]] Tensor apply_embedding(Forward& f, Module& module, const Tensor& ids);

// Llama's RMSNorm: fp32 inside, weight times the normalised tensor in the input's type.
// transformers 5.24 models/llama/modeling_llama.py LlamaRMSNorm.
[[nodiscard]] Tensor llama_rms_norm(Forward& f, Module& module, Tensor x);

// cos and sin of rotary positions, one row of the model's own head dimension: LlamaRotaryEmbedding.
struct RotaryTables {
  Tensor cos, sin;
};
[[nodiscard]] RotaryTables rotary_tables(Forward& f, const Size& rotary_dim, DType type);
// One half of the columns negated, before or between the other: halves or neighbours, the same memory.
[[nodiscard]] Tensor rotate_half(Forward& f, const Tensor& x);
// x·cos + rotate_half(x)·sin. x: rows of heads, width the rotated dimension.
[[nodiscard]] Tensor apply_rotary(Forward& f, const Tensor& x, const Tensor& cos, const Tensor& sin);

// The gated MLP of llama: down(act(gate(x)) * up(x)). Module names with their prefix.
[[nodiscard]] Tensor gated_mlp(Forward& f, Modules& modules, const std::string& prefix, const std::string& activation,
                               const Tensor& x);
// ACT2FN[name](x): silu, gelu, gelu_new (Python), relu ...
[[nodiscard]] Tensor activation(Forward& f, const std::string& name, Tensor x);

// x.view() or reshape() of it whose gradient lies otherwise and is copied.
[[nodiscard]] Tensor viewed(Recorder& r, const Tensor& x, const Shape& shape, const char* label);
// A view of part of x whose gradient is a zero-filled tensor of the whole.
[[nodiscard]] Tensor part_of(Forward& f, const Tensor& x, const Shape& shape, const char* label);

// What a projection gave, seen as so many heads of `width`. Behind a matrix product over heads (eager, math), or where a part of each
// head is cut out or a cache turns it (`turned`), its gradient comes with heads first: the view's backward copies it.
[[nodiscard]] Tensor seen_as_heads(Forward& f, const Tensor& x, const Size& heads, const Size& width,
                                   bool turned = false);

// The result of a matrix product over (b, heads): its gradient comes with heads last and is copied unless there is one row.
[[nodiscard]] Tensor heads_first_gradient(Forward& f, const Tensor& x);

}  // namespace membill
