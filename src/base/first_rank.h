// The rank that adapters begin with.
#pragma once

#include <cstdint>

#include "membill/training_plan.h"

namespace membill {

// AdaLoRA's init_rank (12 where none is given), any other's rank.
[[nodiscard]] inline std::int64_t first_rank(const AdapterPlan& plan, Method method) {
  constexpr std::int64_t kFirstOfAdaLora = 12;
  return method == Method::adalora ? plan.init_rank.value_or(kFirstOfAdaLora) : plan.rank;
}

}  // namespace membill
