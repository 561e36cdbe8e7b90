// Where a number comes from.
#pragma once

#include <string>

namespace membill {

// Free text that lets a reader find the origin of a fact: paper and table, file and symbol with version, or a measurement.
// Example: "Korthikanti et al. 2022, eq. 2"; "torch 2.15 aten/src/ATen/cuda/CublasHandlePool.cpp". Never empty in a catalogue row.
using Source = std::string;

}  // namespace membill
