// Layers of mamba's second version, as the families that have them share them.
#pragma once

#include <string_view>

#include "catalog/families/decoder.h"

namespace membill::census {

// Shape under bamba's key names (mamba_n_heads, mamba_d_head, ...), as granitemoehybrid and falcon_h1 spell them.
[[nodiscard]] StateSpaceShape read_mamba2(const ConfigReader& config, std::int64_t inner);

// Options of a mixer's modules.
struct Mamba2Options {
  bool convolution_bias = true, input_bias = false, output_bias = false, norm = true;
};
// <module>.dt_bias, A_log, D, conv1d, in_proj, norm, out_proj.
void mamba2_mixer(TensorList& list, std::string_view module, const StateSpaceShape& shape, std::int64_t hidden,
                  const Mamba2Options& options);

// The word of each layer in layers_block_type or layer_types; linear_attention where neither names it.
[[nodiscard]] std::vector<std::string> layer_words(const ConfigReader& config, std::int64_t layers);

}  // namespace membill::census
