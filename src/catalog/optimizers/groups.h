// The optimizer rows by origin. optimizers() joins them.
#pragma once

#include <vector>

#include "membill/catalog.h"

namespace membill {

[[nodiscard]] std::vector<OptimizerRow> torch_optimizers();  // PyTorch's own, and plain PyTorch code of others
[[nodiscard]] std::vector<OptimizerRow> bitsandbytes_optimizers();
[[nodiscard]] std::vector<OptimizerRow> torchao_optimizers();
[[nodiscard]] std::vector<OptimizerRow> low_rank_optimizers();  // GaLore, Q-GaLore, APOLLO
[[nodiscard]] std::vector<OptimizerRow>
structured_optimizers();  // Muon, Shampoo, SOAP, Adam-mini, block-wise and fused ones

inline constexpr OptimizerState kFirstMoment{"m", "first moment"};
inline constexpr OptimizerState kSecondMoment{"v", "second moment"};
inline constexpr OptimizerState kFirstMoment32{"m", "first moment", StateWidth::fp32};
inline constexpr OptimizerState kSecondMoment32{"v", "second moment", StateWidth::fp32};

}  // namespace membill
