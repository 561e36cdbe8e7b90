// How the layers of a stack fall into runs of alike units, so that each run is simulated by four units at most.
#pragma once

#include <cstdint>
#include <vector>

namespace membill {

// `count` units of `length` layers each, from layer `first` on; unit j begins at layer first + j * length.
struct LayerRun {
  std::int64_t first = 0;
  std::int64_t length = 1;
  std::int64_t count = 1;
};

// Covers the layers in order. `alike[i]` names the class of layer i: layers of a class run the same program with the same
// parameters trained. With `expand`, every layer is a run of its own.
[[nodiscard]] std::vector<LayerRun> find_runs(const std::vector<std::int32_t>& alike, bool expand);

}  // namespace membill
