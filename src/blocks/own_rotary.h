// Rotary embeddings that differ from llama's in types, layout or the part of a head that they rotate.
#pragma once

#include "blocks/llama.h"

namespace membill {

// olmo, olmo2: tables in fp32, results back in the heads' type.
void rotate_by_wide_tables(Forward& f, const LayerInputs& inputs, Heads& heads);
// cohere: heads in fp32 while they are rotated.
void rotate_in_fp32(Forward& f, const LayerInputs& inputs, Heads& heads);
// phi3: the rotated columns and the rest concatenated at once. Results lie as (b, heads, s, d).
void rotate_part(Forward& f, const LayerInputs& inputs, Heads& heads);
// glm, glm4: the same over pairs of neighbours, with tables that each layer spreads again.
void rotate_neighbours(Forward& f, const LayerInputs& inputs, Heads& heads);

}  // namespace membill
