// DeepSpeed files that frameworks ship and their users name: jobs refer to them by a path inside of a checkout that is not here.
#pragma once

#include <optional>
#include <string>

#include "io/importers/shell_words.h"
#include "membill/value.h"

namespace membill::io {

struct ShippedDeepSpeed {
  std::string owner;  // "LLaMA-Factory"
  Value config;
};

// The shipped file that `path` names: by its last name, or by the short name that ms-swift takes ("zero2"). Nothing when that file is
// here or written by the launch script, or none is shipped under that name.
[[nodiscard]] std::optional<ShippedDeepSpeed> shipped_deepspeed(const std::string& path, const std::string& folder,
                                                                const WrittenFiles* files);

}  // namespace membill::io
