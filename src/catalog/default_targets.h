// A row of PEFT's tables of default targets (src/peft/utils/constants.py).
#pragma once

#include <array>
#include <string_view>

namespace membill {

struct DefaultTargets {
  std::string_view model_type;
  std::array<std::string_view, 6>
      modules;  // name endings; one regular expression for gemma4; empty entries end the list
};

}  // namespace membill
