// Layers of mamba's second version as granitemoehybrid, nemotron_h and falcon_h1 run them in Transformers 5.24.
#pragma once

#include <string>

#include "blocks/forward.h"

namespace membill {

// What falcon_h1 has otherwise: multipliers before and behind the projection, a gate without a norm, or one of its own.
struct Mamba2Style {
  bool multiplied = false;
  bool gate_after_norm = false;
};

// The layer's mixer, whose modules are called `prefix` ("mamba."): in_proj to out_proj.
[[nodiscard]] Tensor mamba2_mixer(Forward& f, const LayerContext& layer, const std::string& prefix,
                                  const Tensor& hidden, const Mamba2Style& style = {});

}  // namespace membill
