#include <algorithm>

#include "base/text.h"
#include "catalog/optimizers/groups.h"
#include "membill/catalog.h"

namespace membill {
namespace {

std::vector<OptimizerRow> optimizer_rows() {
  std::vector<OptimizerRow> rows;
  for (const auto& group : {torch_optimizers(), bitsandbytes_optimizers(), torchao_optimizers(), low_rank_optimizers(),
                            structured_optimizers()}) {
    rows.insert(rows.end(), group.begin(), group.end());
  }
  return rows;
}

bool names(const std::vector<std::string_view>& list, std::string_view kebab) {
  return std::any_of(list.begin(), list.end(), [&](std::string_view name) { return to_kebab(name) == kebab; });
}

}  // namespace

std::span<const OptimizerRow> optimizers() {
  static const std::vector<OptimizerRow> kRows = optimizer_rows();
  return kRows;
}

const OptimizerRow* find_optimizer(std::string_view name) {
  const std::string kebab = to_kebab(name);
  for (const OptimizerRow& row : optimizers()) {
    if (row.name == kebab || names(row.aliases, kebab) || names(row.fused_aliases, kebab)) return &row;
  }
  return nullptr;
}

bool names_fused_optimizer(std::string_view name) {
  const OptimizerRow* row = find_optimizer(name);
  return row != nullptr && names(row->fused_aliases, to_kebab(name));
}

}  // namespace membill
