// Sizes inside of sentences.
#pragma once

#include <cstdint>
#include <string>

namespace membill {

// "12.55 GiB", rounded half up.
[[nodiscard]] inline std::string gib_text(std::int64_t bytes) {
  const std::int64_t rest = bytes & ((std::int64_t{1} << 30) - 1);
  const std::int64_t hundredths = (bytes >> 30) * 100 + ((rest * 100 + (std::int64_t{1} << 29)) >> 30);
  const std::string fraction = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + "." + (fraction.size() < 2 ? "0" : "") + fraction + " GiB";
}

}  // namespace membill
