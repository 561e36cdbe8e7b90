// Weights that no batch reaches: those of a vision part.
#pragma once

#include <memory>

#include "estimate/parameters.h"

namespace membill {

// Keeps an idle weight of `spec`, and the module that owns it, where adapters may be put on that. `stored`: its packed storage; null: it
// is whole, and `weight` is it.
void keep_idle(JobModules& job, const TensorSpec& spec, Tensor weight, std::unique_ptr<QuantizedWeight> stored);

}  // namespace membill
