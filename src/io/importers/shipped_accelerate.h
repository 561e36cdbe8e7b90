// accelerate's files that TRL, alignment-handbook and open-r1 ship, which launch scripts name.
#pragma once

#include <optional>
#include <string>

#include "io/importers/importer.h"

namespace membill::io {

struct ShippedAccelerate {
  std::string owner;
  Value config;
};

// The file that `path` ("recipes/accelerate_configs/zero3.yaml", TRL's short name "zero3") names; nothing when a file of that path is
// here or written by the script, or none is shipped under its name.
[[nodiscard]] std::optional<ShippedAccelerate> shipped_accelerate(const std::string& path, const JobSource& source);

}  // namespace membill::io
