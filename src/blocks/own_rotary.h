// Rotary embeddings that differ from llama's in types, layout or the part of a head that they rotate.
#pragma once

#include "blocks/llama.h"

namespace membill {

// gemma3, olmo3: masks, position ids and a pair of tables for full layers, another for sliding ones.
[[nodiscard]] LayerInputs inputs_by_layer_type(Forward& f, DType table_type);
// The inputs with the tables of `layer` as cos and sin.
[[nodiscard]] LayerInputs tables_of(const LayerContext& layer, const LayerInputs& inputs);

// olmo, olmo2: tables in fp32, results back in the heads' type.
void rotate_by_wide_tables(Forward& f, const LayerInputs& inputs, Heads& heads);
// cohere: heads in fp32 while they are rotated.
void rotate_in_fp32(Forward& f, const LayerInputs& inputs, Heads& heads);
// modernbert: the same, with a copy for each of the two products.
void rotate_in_fp32_twice(Forward& f, const LayerInputs& inputs, Heads& heads);
// phi3: the rotated columns and the rest concatenated at once. Results lie as (b, heads, s, d).
void rotate_part(Forward& f, const LayerInputs& inputs, Heads& heads);
// glm4_moe, minimax_m2, nemotron: the same, both rotated before either is concatenated.
void rotate_part_together(Forward& f, const LayerInputs& inputs, Heads& heads);
// ernie4_5: as glm's, with whole heads in fp32 beside tables in fp32.
void rotate_neighbours_in_fp32(Forward& f, const LayerInputs& inputs, Heads& heads);
// glm, glm4: the same over pairs of neighbours, with tables that each layer spreads again.
void rotate_neighbours(Forward& f, const LayerInputs& inputs, Heads& heads);

}  // namespace membill
