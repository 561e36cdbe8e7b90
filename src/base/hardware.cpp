#include "membill/hardware.h"

#include <algorithm>

namespace membill {

std::optional<Bytes> Hardware::usable() const {
  if (!gpu || !gpu->usable) return std::nullopt;
  return std::max(Bytes(0), *gpu->usable - others_use - margin);
}

}  // namespace membill
