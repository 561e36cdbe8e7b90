// Megatron's tensor-parallel layers (megatron-core 0.16 tensor_parallel/layers.py, mappings.py, cross_entropy.py). Collectives work in
// place or write what is allocated here. With sequence parallelism a rank holds N/t rows between the split layers; their inputs are
// gathered in the global memory buffer, once in forward and again in backward.
#pragma once

#include <string_view>

#include "blocks/forward.h"

namespace membill {

// Whether selective recompute names `module`.
[[nodiscard]] bool recomputes_module(const TrainingPlan& plan, std::string_view module);

// Rows of the residual stream that a rank holds: N, or N/t with sequence parallelism.
[[nodiscard]] Size stream_rows(const Forward& f);

// Where a linear adds its bias: the sum is a tensor of its own, or the kernel that takes the output adds it.
enum class AddsBias { here, later };

// ColumnParallelLinear with its adapter: rows of the stream to N rows of this rank's columns.
[[nodiscard]] Tensor column_linear(Forward& f, Module& module, const Tensor& x, AddsBias bias = AddsBias::later);
// The same of a bare matrix: the head's, which may be the embedding's.
[[nodiscard]] Tensor column_linear(Forward& f, Parameter& weight, const Tensor& x);
// RowParallelLinear without its bias, with its adapter: N rows of this rank's columns to rows of the stream.
[[nodiscard]] Tensor row_linear(Forward& f, Module& module, const Tensor& x);
// A linear without communication: a split one inside an expert, whose rows the dispatcher has gathered, or a whole one.
[[nodiscard]] Tensor local_linear(Forward& f, Module& module, const Tensor& x);

// base + adapter's output * scaling, where `wide` is what the adapter's second matrix makes.
[[nodiscard]] Tensor with_adapter_output(Recorder& r, const Tensor& base, Tensor wide);

// VocabParallelEmbedding with what LanguageModelEmbedding does to its output: positions, the stream's layout, dropout.
[[nodiscard]] Tensor parallel_embedding(Forward& f, Parameter& words, Parameter* positions, const Tensor& ids);

// vocab_parallel_cross_entropy: one loss a token. The fp32 copy of the logits becomes their softmax, then their gradient.
[[nodiscard]] Tensor parallel_cross_entropy(Forward& f, const Tensor& logits, const Tensor& labels);

// gradient_accumulation_fusion with Transformer Engine: autograd is given a stand-in for the gradient of each weight, one for all of a
// shape, which stays (layers.py get_dummy_wgrad). Nothing without the fusion.
[[nodiscard]] std::vector<Tensor> dummy_gradients(Forward& f);

// What get_global_memory_buffer() holds in the end for layers of this model: the gathered input, the scores of unfused attention, or the
// rows that an all-gather brings to the experts.
[[nodiscard]] Tensor global_memory_buffer(Forward& f);

}  // namespace membill
