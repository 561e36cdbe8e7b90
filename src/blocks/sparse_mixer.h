// phimoe's router: models/phimoe/modeling_phimoe.py sparsemixer.
#pragma once

#include "blocks/experts.h"

namespace membill {

// Two experts a token, each sampled from the scores near the best one; weights that send their gradient to the scores alone.
[[nodiscard]] Routing route_by_sampling(Forward& f, const LayerContext& layer, Module& router, const Tensor& hidden);

}  // namespace membill
