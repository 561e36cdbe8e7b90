// How the layers of a stack fall into runs of alike units, so that each run is simulated by four units at most.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
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

// The place of `value` among those seen so far, to which it is added.
template <typename T>
[[nodiscard]] std::int32_t number_of(T value, std::vector<T>& seen) {
  const auto found = std::find(seen.begin(), seen.end(), value);
  const auto number = static_cast<std::int32_t>(found - seen.begin());
  if (found == seen.end()) seen.push_back(std::move(value));
  return number;
}

}  // namespace membill
