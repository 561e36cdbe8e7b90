// A row of PEFT's tables of default targets (src/peft/utils/constants.py).
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace membill {

struct DefaultTargets {
  std::string_view model_type;
  std::array<std::string_view, 6>
      modules;  // name endings; one regular expression for gemma4; empty entries end the list
};

// The modules of the type's row; none when there is no row.
[[nodiscard]] inline std::span<const std::string_view> find_targets(std::span<const DefaultTargets> rows,
                                                                    std::string_view model_type) {
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const DefaultTargets& entry) { return entry.model_type == model_type; });
  if (row == rows.end()) return {};
  return {row->modules.begin(), std::find(row->modules.begin(), row->modules.end(), std::string_view())};
}

}  // namespace membill
